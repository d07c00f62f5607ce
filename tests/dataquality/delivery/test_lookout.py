"""Looking side by side: who is silent costs its time once, and nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTask, ProbeTimeout
from dq.lake.storage import Files, FileStat, LocalFiles, TimedFiles


@dataclass(frozen=True, slots=True)
class Storage(LocalFiles):
    """A storage whose paths below `/silent` are not answered until `over`."""

    over: threading.Event = field(default_factory=threading.Event)

    def stat(self, path: str) -> FileStat | None:
        if path.startswith("/silent"):
            self.over.wait(30)
        return None


class Clock:
    """The time of the test; it stands still until it is moved, however seldom a thread has its turn."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def over() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def errand(files: Files, root: str, path: str) -> ProbeTask[str]:
    def work(asked: Files) -> str:
        asked.stat(path)
        return path

    return ProbeTask(root, files, work)


def moving(clock: Clock, errands: list[ProbeTask[str]]) -> list[ProbeTask[str]]:
    """The same, the last of which to be done lets a second go by."""
    done: list[str] = []

    def then(one: ProbeTask[str]) -> ProbeTask[str]:
        def work(asked: TimedFiles) -> str:
            answer = one.probe(asked)
            done.append(answer)
            if len(done) == len(errands):
                clock.now += 1
            return answer

        return replace(one, probe=work)

    return [then(one) for one in errands]


def test_a_silent_root_costs_its_time_once_and_nobody_else(over: threading.Event) -> None:
    files = Storage(over=over)
    many = [errand(files, "/silent", f"/silent/{number}") for number in range(200)]
    fine = [errand(files, f"/fine{number % 3}", f"/fine/{number}") for number in range(200)]
    clock = Clock()

    answers = ProbePool(seconds=0.5, clock=clock).run([*many, *moving(clock, fine)])

    assert answers[200:] == [f"/fine/{number}" for number in range(200)]
    # Once: nobody moves the clock a second time.
    assert set(answers[:200]) == {ProbeTimeout("/silent did not answer within 0.5 s")}


def test_a_root_that_is_still_silent_costs_nothing_more_and_is_asked_when_it_is_not(
    over: threading.Event,
) -> None:
    files, lookout, others = Storage(over=over), ProbePool(seconds=0.2), {*threading.enumerate()}
    one = [errand(files, "/silent", "/silent/a")]
    silent = [isinstance(lookout.run(one)[0], ProbeTimeout) for _ in range(6)]
    waiting = [thread for thread in {*threading.enumerate()} - others if "_work" in thread.name]

    over.set()
    lookout.seconds = 30
    for thread in waiting:
        thread.join(10)

    assert (silent, len(waiting)) == ([True] * 6, 4)
    assert lookout.run(one) == ["/silent/a"]


def test_one_silent_file_costs_no_other_under_its_root(over: threading.Event) -> None:
    files = Storage(over=over)
    clock = Clock()
    fine = moving(clock, [errand(files, "/lake", f"/lake/{number}") for number in range(500)])

    asked = [fine[0], errand(files, "/lake", "/silent/a"), *fine[1:]]
    answers = ProbePool(seconds=0.5, clock=clock).run(asked)

    assert [number for number, answer in enumerate(answers) if isinstance(answer, ProbeTimeout)] == [1]


def test_an_errand_without_an_end_is_given_up() -> None:
    over, clock = threading.Event(), Clock()
    done: list[threading.Thread] = []

    def once(asked: Files) -> str:
        asked.stat("/")
        done.append(threading.current_thread())
        return "/"

    def forever(asked: Files) -> str:
        while not over.is_set():
            asked.stat("/nothing")
            if done and not done[0].is_alive():
                clock.now += 0.5
        return ""

    answers = ProbePool(seconds=1, clock=clock).run(
        [ProbeTask("/a", LocalFiles(), forever), ProbeTask("/b", LocalFiles(), once)]
    )
    over.set()

    assert (isinstance(answers[0], ProbeTimeout), answers[1]) == (True, "/")


@dataclass(frozen=True, slots=True)
class Impatient(LocalFiles):
    """A storage whose own client gives up waiting."""

    clock: Clock = field(default_factory=Clock)

    def read(self, path: str) -> bytes:
        self.clock.now += 0.3
        raise TimeoutError


def test_a_client_that_gives_up_waiting_itself_costs_its_time_once() -> None:
    def read(asked: Files) -> str:
        with suppress(TimeoutError):
            asked.read("/lake/log")
        return "failed"

    files = Impatient()
    lookout = ProbePool(seconds=0.5, clock=files.clock)

    answers = lookout.run([ProbeTask("/lake", files, read) for _ in range(500)])

    # Once: four at a time, they would take more than half a minute.
    assert files.clock.now == 100.3
    assert (answers[0], {type(answer) for answer in answers[1:]}) == ("failed", {ProbeTimeout})


# While pyarrow is loaded, the clock goes on by more than the limit, and whoever looks at it has time to.
COLD_DISK = """
import sys, time
from dq.contracts.outcome import ReadError
from dq.lake.storage import Storages
from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTask

class Cold:
    now = 0.0

    def find_spec(self, name, path=None, target=None):
        if name == "pyarrow":
            self.now += 60
            time.sleep(0.5)

def work(files):
    try:
        return files.nothing("s3://lake/x")
    except ReadError as error:
        return "refused" if "NETWORK_CONNECTION" in error.message else error.message

disk = Cold()
sys.meta_path.insert(0, disk)
one = ProbeTask("s3://lake", Storages(seconds=1).of("s3://lake"), work)
print(disk.now, ProbePool(clock=lambda: disk.now).run([one, one]), disk.now)
"""


def test_what_this_machine_takes_to_load_a_client_is_no_silence_of_the_storage() -> None:
    own = {"ENDPOINT_URL": "http://127.0.0.1:1", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
    nobody = os.environ | {f"AWS_{name}": text for name, text in {**own, "REGION": "c"}.items()}

    ran = subprocess.run(
        [sys.executable, "-c", COLD_DISK], env=nobody, capture_output=True, text=True, timeout=99, check=False
    )

    assert ran.stdout == "0.0 ['refused', 'refused'] 60.0\n", ran.stderr


def test_a_mistake_of_ours_is_raised() -> None:
    def wrong(_: Files) -> str:
        raise AssertionError("ours")

    with pytest.raises(AssertionError, match="ours"):
        ProbePool().run([ProbeTask("/a", LocalFiles(), wrong)])
