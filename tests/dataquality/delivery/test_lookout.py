"""Looking side by side: who is silent costs its time once, and nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from dq.dataquality.delivery.lake.files import Files, LocalFiles, Seen
from dq.dataquality.delivery.sources.lookout import Errand, Lookout, Silence


@dataclass(frozen=True, slots=True)
class Storage(LocalFiles):
    """A storage whose paths below `/silent` are not answered until `over`."""

    over: threading.Event = field(default_factory=threading.Event)

    def stat(self, path: str) -> Seen | None:
        if path.startswith("/silent"):
            self.over.wait(30)
        return None


@pytest.fixture
def over() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def errand(files: Files, root: str, path: str) -> Errand[str]:
    def work(asked: Files) -> str:
        asked.stat(path)
        return path

    return Errand(root, files, work)


def test_a_silent_root_costs_its_time_once_and_nobody_else(over: threading.Event) -> None:
    files = Storage(over=over)
    many = [errand(files, "/silent", f"/silent/{number}") for number in range(200)]
    fine = [errand(files, f"/fine{number % 3}", f"/fine/{number}") for number in range(200)]
    begun = time.monotonic()

    answers = Lookout(seconds=0.5).answers([*many, *fine])

    # Once: one after another they would take a hundred seconds.
    assert time.monotonic() - begun < 10
    assert answers[200:] == [f"/fine/{number}" for number in range(200)]
    assert set(answers[:200]) == {Silence("/silent did not answer within 0.5 s")}


def test_a_root_that_is_still_silent_costs_nothing_more_and_is_asked_when_it_is_not(
    over: threading.Event,
) -> None:
    files, lookout = Storage(over=over), Lookout(seconds=0.2)
    one = [errand(files, "/silent", "/silent/a")]
    silent = [isinstance(lookout.answers(one)[0], Silence) for _ in range(6)]
    waiting = [thread for thread in threading.enumerate() if thread.daemon and "_work" in thread.name]

    over.set()
    for thread in waiting:
        thread.join(10)

    assert (silent, len(waiting)) == ([True] * 6, 4)
    assert lookout.answers(one) == ["/silent/a"]


def test_one_silent_file_costs_no_other_under_its_root(over: threading.Event) -> None:
    files = Storage(over=over)
    asked = [errand(files, "/lake", "/lake/0"), errand(files, "/lake", "/silent/a")]
    asked += [errand(files, "/lake", f"/lake/{number}") for number in range(1, 500)]

    answers = Lookout(seconds=0.5).answers(asked)

    assert [number for number, answer in enumerate(answers) if isinstance(answer, Silence)] == [1]


def test_an_errand_without_an_end_is_given_up() -> None:
    over = threading.Event()

    def forever(asked: Files) -> str:
        while not over.is_set():
            asked.stat("/nothing")
        return ""

    answers = Lookout(seconds=0.01).answers(
        [Errand("/a", LocalFiles(), forever), errand(LocalFiles(), "/b", "/")]
    )
    over.set()

    assert (isinstance(answers[0], Silence), answers[1]) == (True, "/")


@dataclass(frozen=True, slots=True)
class Impatient(LocalFiles):
    """A storage whose own client gives up waiting."""

    def read(self, path: str) -> bytes:
        time.sleep(0.3)
        raise TimeoutError


def test_a_client_that_gives_up_waiting_itself_costs_its_time_once() -> None:
    def read(asked: Files) -> str:
        with suppress(TimeoutError):
            asked.read("/lake/log")
        return "failed"

    begun = time.monotonic()
    answers = Lookout(seconds=0.5).answers([Errand("/lake", Impatient(), read) for _ in range(500)])

    # Four at a time, they would take more than half a minute.
    assert time.monotonic() - begun < 10
    assert (answers[0], {type(answer) for answer in answers[1:]}) == ("failed", {Silence})


# While pyarrow is loaded, the clock goes on by more than the limit, and whoever looks at it has time to.
COLD_DISK = """
import sys, time
from dq.contracts.shared.errors import Unreadable
from dq.dataquality.delivery.lake.files import Storages
from dq.dataquality.delivery.sources.lookout import Errand, Lookout

class Cold:
    now = 0.0

    def find_spec(self, name, path=None, target=None):
        if name == "pyarrow":
            self.now += 60
            time.sleep(0.5)

def work(files):
    try:
        return files.nothing("s3://lake/x")
    except Unreadable as error:
        return "refused" if "NETWORK_CONNECTION" in error.message else error.message

disk = Cold()
sys.meta_path.insert(0, disk)
one = Errand("s3://lake", Storages(seconds=1).of("s3://lake"), work)
print(disk.now, Lookout(clock=lambda: disk.now).answers([one, one]), disk.now)
"""


def test_what_this_machine_takes_to_load_a_client_is_no_silence_of_the_storage() -> None:
    own = {"ENDPOINT_URL": "http://127.0.0.1:1", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
    nobody = os.environ | {f"AWS_{name}": text for name, text in {**own, "REGION": "c"}.items()}

    ran = subprocess.run(
        [sys.executable, "-c", COLD_DISK], env=nobody, capture_output=True, text=True, timeout=60, check=False
    )

    assert ran.stdout == "0.0 ['refused', 'refused'] 60.0\n", ran.stderr


def test_a_mistake_of_ours_is_raised() -> None:
    def wrong(_: Files) -> str:
        raise AssertionError("ours")

    with pytest.raises(AssertionError, match="ours"):
        Lookout().answers([Errand("/a", LocalFiles(), wrong)])
