"""What a stranger can lay into a registry beside contracts: links, pipes, devices, names, sizes, swaps.

Each trick is planted once and looked at by every command that reads contracts. Nothing outside of the
registry is read or written: a secret with a canary lies there, which no output may hold and no command may
change. No command ends in a traceback, waits for a pipe, or leaves the other contracts unjudged.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.work import bytes_read

from dq.cli.main import run
from dq.contracts.access import files
from dq.contracts.outcome import ReadError
from dq.contracts.yaml import parse
from dq.store.engine import open_store

CANARY = "CANARY-7f3a"
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
servers:
  - {{server: lake, type: local, path: lake/{id}, format: csv}}
team: {{members: [{{username: ana@example.com, role: owner}}]}}
support:
  - {{channel: "#sales", tool: slack, scope: notifications}}
schema:
  - name: {id}
    description: One row per order.
    properties:
      - {{name: amount, logicalType: integer, physicalType: bigint, required: true}}
"""
# A contract that is not formatted and has a fault in each line that shows the line.
SECRET = f"id: {CANARY}\nkind: DataContract\napiVersion: v3.2.0\nversion: 1.0.0\n{CANARY}: {CANARY}\n"
TRICK = "trick.odcs.yaml"

# One that reads and prints in the way of each other, and what it may take.
COMMANDS = (
    "validate registry --format json --report sarif=../reports/sarif --report junit=../reports/junit"
    " --report markdown=../reports/markdown --report github=../reports/github --report text=../reports/text",
    "validate registry/{trick}",
    "validate registry --base HEAD",
    "diff registry/good.odcs.yaml registry/{trick}",
    "diff registry/{trick} registry/good.odcs.yaml",
    "fmt --check registry",
    "fmt --diff registry",
    "fmt registry",
    "fmt registry/{trick}",
    "explain registry/{trick}",
    "register registry",
    "register registry/{trick}",
    "check registry/{trick} --dry-run",
    "watch registry",
    "status registry",
    "publish registry/{trick} --rows 1 --cycle 2026-05-01T00:00:00Z",
    "sample registry/{trick} data.csv",
    "init registry --id {id} --domain a --owner b --channel c --tz UTC --schedule 0_6_*_*_*",
    "doctor",
)
# Reading a folder takes milliseconds; a process that waits does nothing, and is woken.
MOST_WAIT_SECONDS, MOST_BYTES_READ = 300, 50_000_000


@dataclass(frozen=True)
class Home:
    """The working folder with its registry, and the folder outside that holds the secret."""

    folder: Path
    outside: Path

    @property
    def registry(self) -> Path:
        return self.folder / "registry"

    @property
    def trick(self) -> Path:
        return self.registry / TRICK

    @property
    def secret(self) -> Path:
        return self.outside / "secret.odcs.yaml"


@dataclass(frozen=True)
class Trick:
    """What is planted, under which name, and the rule by which `dq validate` says so ("" for none)."""

    id: str
    plant: Callable[[Home], object]
    rule: str = "not-a-plain-file"
    name: str = TRICK
    # Commands whose name of the trick would be the operator's own way to the secret.
    walked_only: bool = False


def link(target: str | Path, name: str = TRICK) -> Callable[[Home], object]:
    """A link in the registry; `{outside}` and `{registry}` stand for the folders."""
    return lambda home: (home.registry / name).symlink_to(
        str(target).format(outside=home.outside, registry=home.registry, secret=home.secret)
    )


def chain(length: int) -> Callable[[Home], object]:
    def plant(home: Home) -> None:
        target = str(home.secret)
        for number in range(length):
            (home.registry / f"hop{number}").symlink_to(target)
            target = f"hop{number}"
        home.trick.symlink_to(target)

    return plant


def to_special(make: Callable[[Path], object]) -> Callable[[Home], object]:
    def plant(home: Home) -> None:
        make(home.outside / "special")
        home.trick.symlink_to(home.outside / "special")

    return plant


def special(make: Callable[[Path], object]) -> Callable[[Home], object]:
    return lambda home: make(home.trick)


def device(kind: int, major: int, minor: int) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        try:
            os.mknod(path, kind | 0o666, os.makedev(major, minor))
        except PermissionError:
            pytest.skip("only root makes devices")

    return make


def bound(path: Path) -> None:
    """A socket; its address may not be as long as the path."""
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)


def folder_of_contracts(name: str) -> Callable[[Home], object]:
    def plant(home: Home) -> None:
        (home.registry / name).mkdir()
        (home.registry / name / "inner.odcs.yaml").write_text(CONTRACT.format(id="inner"))

    return plant


def contract(name: str | bytes, text: str = CONTRACT.format(id="trick")) -> Callable[[Home], object]:
    def plant(home: Home) -> None:
        try:
            (home.registry / os.fsdecode(name)).write_text(text)
        except OSError as error:
            pytest.skip(f"this file system has no such names: {error.strerror}")

    return plant


def deep(depth: int, part: str = "d") -> Callable[[Home], object]:
    """A contract at the bottom of many folders, made from the top so that no path is ever too long."""

    def plant(home: Home) -> None:
        at = os.open(home.registry, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir(part, dir_fd=at)
            inner = os.open(part, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        with os.fdopen(os.open("deep.odcs.yaml", os.O_WRONLY | os.O_CREAT, dir_fd=at), "w") as file:
            file.write(CONTRACT.format(id="deep"))
        os.close(at)

    return plant


def sparse(size: int) -> Callable[[Home], object]:
    def plant(home: Home) -> None:
        with home.trick.open("wb") as file:
            file.truncate(size)

    return plant


def referring(text: str) -> Callable[[Home], object]:
    """A contract that names another file; a pipe lies there, so that whoever opened it would wait."""

    def plant(home: Home) -> None:
        os.mkfifo(home.outside / "pipe.odcs.yaml")
        related = f"required: true, relationships: [{{to: '{text.format(outside=home.outside)}'}}]"
        whole = CONTRACT.format(id="trick").replace("required: true", related)
        home.trick.write_text(whole.replace("version:", f"dataProduct: '{text}'\nversion:"))

    return plant


def no_rights(path: Path) -> None:
    path.write_text(CONTRACT.format(id="trick"))
    path.chmod(0)


def case_twins(home: Home) -> None:
    contract("Trick.odcs.yaml", CONTRACT.format(id="other"))(home)
    contract(TRICK)(home)


COMPOSED, DECOMPOSED = (f"{unicodedata.normalize(form, 'é')}.odcs.yaml" for form in ("NFC", "NFD"))


def normal_twins(home: Home) -> None:
    contract(COMPOSED, CONTRACT.format(id="other"))(home)
    contract(DECOMPOSED)(home)


TRICKS = (
    Trick("a link to a secret, absolute", link("{secret}")),
    Trick("a link to a secret, relative", link("../../outside/secret.odcs.yaml")),
    Trick("a link out and in again", link("../../outside/../outside/secret.odcs.yaml")),
    Trick("a link with odd slashes", link(".//.//..//../outside/./secret.odcs.yaml")),
    Trick("a link through proc's working folder", link("/proc/self/cwd/../outside/secret.odcs.yaml")),
    Trick("a link through proc's root", link("/proc/self/root{secret}")),
    Trick("a chain of three links", chain(3)),
    Trick("a chain of fifty links", chain(50)),
    Trick("a link to itself", link(TRICK)),
    Trick("two links to each other", lambda home: (link("hop")(home), link(TRICK, "hop")(home))),
    Trick("a link to nothing", link("nothing")),
    Trick("a link to nothing where a file could be made", link("{outside}/made")),
    Trick("a link to the environment", link("/proc/self/environ")),
    Trick("a link to the command line", link("/proc/self/cmdline")),
    Trick("a link to the memory", link("/proc/self/mem")),
    Trick("a link to the kernel's log", link("/proc/kmsg")),
    Trick("a link to an open file", link("/proc/self/fd/0")),
    Trick("a link to /dev/zero", link("/dev/zero")),
    Trick("a link to /dev/stdin", link("/dev/stdin")),
    Trick("a link to the terminal", link("/dev/tty")),
    Trick("a link to a pipe", to_special(os.mkfifo)),
    Trick("a link to a socket", to_special(bound)),
    Trick("a link to a folder outside, named as a contract", link("{outside}")),
    Trick("a link to its own folder, named as a contract", link(".")),
    Trick("a link to another contract", link("good.odcs.yaml")),
    Trick("a link to the token in Git's settings", link("../.git/config")),
    Trick("a link whose text is 4,000 characters", link("./" * 1_980 + "nothing")),
    Trick("a link whose text holds a line break", link("a\n::error::b\x1b[2J")),
    Trick("a linked folder, absolute", link("{outside}", "sub"), "", walked_only=True),
    Trick("a linked folder, relative", link("../../outside", "sub"), "", walked_only=True),
    Trick("a linked folder that is its own", link(".", "sub"), "", walked_only=True),
    Trick("a linked folder that is the one above", link("..", "sub"), "", walked_only=True),
    Trick("a linked folder that is the root", link("/", "sub"), "", walked_only=True),
    Trick("a linked folder that is /proc/self", link("/proc/self", "sub"), "", walked_only=True),
    Trick("a pipe", special(os.mkfifo)),
    Trick("a socket", special(bound)),
    Trick("the device zero", special(device(stat.S_IFCHR, 1, 5))),
    Trick("the device null", special(device(stat.S_IFCHR, 1, 3))),
    Trick("a terminal", special(device(stat.S_IFCHR, 5, 0))),
    Trick("a disk", special(device(stat.S_IFBLK, 7, 0))),
    Trick("an empty folder named as a contract", special(os.mkdir)),
    Trick("a folder of contracts named as a contract", folder_of_contracts(TRICK)),
    Trick("3 GB of nothing", sparse(3_000_000_000), "file-too-large"),
    Trick("one byte more than the limit", sparse(5_000_001), "file-too-large"),
    Trick("zeros to the limit", sparse(5_000_000), "not-utf8"),
    Trick("an empty file", sparse(0), "not-a-contract"),
    Trick("500 folders deep", deep(500), "file-unreadable"),
    Trick("a path of 4,000 characters", deep(16, "d" * 250), ""),
    Trick("a name with a line break", contract("a\nb.odcs.yaml"), ""),
    Trick("a name with a command of the runner", contract("a\n::error::b.odcs.yaml"), ""),
    Trick("a name that clears the screen", contract("\x1b[2J\x07\r.odcs.yaml"), ""),
    Trick("a name that is written from the right", contract("a\u202elmay.sucod.odcs.yaml"), ""),
    Trick("a name that is not UTF-8", contract(b"a\xff\xfe.odcs.yaml"), ""),
    Trick("a name of 255 bytes", contract("n" * 245 + ".odcs.yaml"), ""),
    Trick("a name that reads like an option", contract("--policy=x.odcs.yaml"), ""),
    Trick("a name of spaces", contract("   .odcs.yaml"), ""),
    Trick("a name that reads like a pattern", contract("[a-z]*?{x}.odcs.yaml"), ""),
    Trick("a name with a back slash", contract("..\\..\\a.odcs.yaml"), ""),
    Trick("a name with a percent and a hash", contract("%2e%2e%2fa#b?c.odcs.yaml"), ""),
    Trick("a name that reads like markup", contract("<img src=x>&`|.odcs.yaml"), ""),
    Trick("a hidden name", contract(".hidden.odcs.yaml", SECRET), "", walked_only=True),
    Trick("names that differ by case", case_twins, "duplicate-contract"),
    Trick("names that differ by normalisation", normal_twins, "duplicate-contract"),
    Trick("a file without rights", special(no_rights), ""),
    Trick("a reference out of the registry", referring("../../outside/pipe.odcs.yaml#/schema/x"), ""),
    Trick("a reference to an absolute path", referring("{outside}/pipe.odcs.yaml#/schema/x"), ""),
    Trick("a reference to a URL of a file", referring("file://{outside}/pipe.odcs.yaml#/schema/x"), ""),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one good contract, and a state store."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "work" / "registry").mkdir(parents=True)
    (folder / "work" / "registry" / "good.odcs.yaml").write_text(CONTRACT.format(id="good"))
    (folder / "work" / "data.csv").write_text("amount\n1\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet", "--template="), ("add", "."), ("commit", "--quiet", "--message", "a")):
        subprocess.run(["git", *who, *words], cwd=folder / "work", check=True, capture_output=True)
    with (folder / "work" / ".git" / "config").open("a") as file:
        file.write(f"[http]\n\textraheader = {CANARY}\n")
    open_store(f"sqlite:///{folder / 'store.db'}").close()
    # Seconds of imports are no part of what a trick costs.
    importlib.import_module("dq.dataquality.sample")
    return folder


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, in memory where there is one: 100,000 files take minutes on a busy disk."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else tmp_path))
    yield folder
    # pytest cannot remove what is too deep.
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.fixture
def home(room: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(room / "work", room / "outside")
    copied = subprocess.run(["cp", "-a", template / "work", made.folder], check=False)
    assert copied.returncode == 0
    made.outside.mkdir()
    made.secret.write_text(SECRET)
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{template / 'store.db'}")
    monkeypatch.setenv(f"A_{CANARY}", CANARY)
    # Without Java no session can start; all that is read of contracts is read before.
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.delenv("SLACK_BOT_TOKEN", raising=False)
    return made


def seen_in(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that can be told of a folder's files without opening what is no file."""
    found = {}
    for one in sorted(folder.rglob("*")):
        is_file = stat.S_ISREG(one.lstat().st_mode)
        found[str(one)] = (one.lstat().st_mode, one.lstat().st_mtime_ns, one.read_bytes() if is_file else b"")
    return found


@contextmanager
def woken(command: str) -> Iterator[None]:
    """Ends what waits, and refuses what reads much."""

    def wake(*_: object) -> None:
        raise AssertionError(f"waits: {command}")

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(MOST_WAIT_SECONDS)
    read_before = bytes_read()
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert bytes_read() - read_before < MOST_BYTES_READ, command


def words_of(command: str, trick: str) -> list[str]:
    words = command.split(" ")
    return [
        word.format(trick=trick, id=trick.split(".")[0]).replace("0_6_*_*_*", "0 6 * * *") for word in words
    ]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda one: one.id)
def test_nothing_outside_is_read_or_written_and_the_others_are_judged(
    home: Home, trick: Trick, capfd
) -> None:
    trick.plant(home)
    outside, settings = seen_in(home.outside), (home.folder / ".git" / "config").read_bytes()
    planted = home.trick.lstat() if os.path.lexists(home.trick) else None

    for command in COMMANDS:
        if trick.walked_only and "{trick}" in command:
            continue
        with woken(command):
            code = run(words_of(command, trick.name))
        out, err = capfd.readouterr()
        assert code in (0, 1, 2, 3), (command, out, err)
        assert "Traceback" not in out + err, command
        assert CANARY not in out + err, (command, out, err)
        assert seen_in(home.outside) == outside, command
        if command is COMMANDS[0]:
            report = json.loads(out)
            found = {one["rule"] for one in report["findings"]} - {"reference-outside", "file-name-not-id"}
            assert found == ({trick.rule} if trick.rule else set()), report
            assert report["counts"]["files"] >= 1

    reports = "".join(one.read_text() for one in (home.folder.parent / "reports").iterdir())
    assert CANARY not in reports
    assert (home.folder / ".git" / "config").read_bytes() == settings
    if planted is not None and trick.rule == "not-a-plain-file":
        assert os.path.samestat(home.trick.lstat(), planted)


def flipping(home: Home) -> Iterator[None]:
    """Turns the trick into a link to the secret and back, as often as it can."""
    good, bad = home.registry / "hop", home.outside / "hop"
    while True:
        good.write_text(CONTRACT.format(id="trick"))
        good.replace(home.trick)
        yield
        bad.symlink_to(home.secret)
        bad.replace(home.trick)
        yield


def flipping_folder(home: Home) -> Iterator[None]:
    """Turns a folder of a contract into a link to the folder of the secret and back."""
    sub, aside, hop = home.registry / "sub", home.outside.parent / "aside", home.outside.parent / "hop"
    sub.mkdir()
    (sub / "secret.odcs.yaml").write_text(CONTRACT.format(id="secret"))
    while True:
        yield
        sub.rename(aside)
        hop.symlink_to(home.outside)
        hop.rename(sub)
        yield
        sub.unlink()
        aside.rename(sub)


def vanishing(home: Home) -> Iterator[None]:
    while True:
        home.trick.write_text(CONTRACT.format(id="trick"))
        yield
        home.trick.unlink()
        yield


def growing(home: Home) -> Iterator[None]:
    home.trick.write_text(CONTRACT.format(id="trick"))
    with home.trick.open("a") as file:
        while True:
            file.write("#" * 100_000)
            file.flush()
            if file.tell() > 50_000_000:
                file.truncate(1_000)
            yield


@pytest.mark.parametrize("change", [flipping, flipping_folder, vanishing, growing])
def test_what_changes_while_it_is_read_is_never_what_lies_outside(home: Home, change, capfd) -> None:
    secret, stop, steps = home.secret.read_bytes(), threading.Event(), change(home)
    next(steps)

    def work() -> None:
        while not stop.is_set():
            next(steps)

    other = threading.Thread(target=work)
    other.start()
    try:
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            for command in ("validate registry", "fmt registry", "status registry"):
                code = run(command.split())
                out, err = capfd.readouterr()
                assert code in (0, 1, 3), (command, out, err)
                assert CANARY not in out + err, command
                assert "Traceback" not in err
    finally:
        stop.set()
        other.join()

    assert home.secret.read_bytes() == secret
    assert [one.name for one in home.outside.iterdir() if one.name not in ("hop", "aside")] == [
        "secret.odcs.yaml"
    ]


def many(number: int, name: str) -> Callable[[Home], object]:
    def plant(home: Home) -> None:
        at = os.open(home.registry, os.O_RDONLY)
        for each in range(number):
            os.close(os.open(name.format(each), os.O_WRONLY | os.O_CREAT, dir_fd=at))
        os.close(at)

    return plant


# A child of a process that has become large counts as large, so that a small one starts it and measures.
MEASURE = """
import json, os, subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
said = child.stdout.read()
_, status, used = os.wait4(child.pid, 0)
child.returncode = 0
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime, said]))
"""


def measured(command: str) -> tuple[int, int, float, str]:
    """Exit code, greatest memory in kB, processor seconds and output of a command as a process."""
    dq = [sys.executable, "-c", "import sys; from dq.cli.main import main; main()", *command.split()]
    program = [sys.executable, "-I", "-c", MEASURE, *dq]
    ran = subprocess.run(program, capture_output=True, timeout=300, check=True)
    code, kilobytes, seconds, output = json.loads(ran.stdout)
    return code, kilobytes, seconds, output


@pytest.mark.parametrize(
    ("plant", "codes", "says"),
    [
        pytest.param(sparse(3_000_000_000), (1,), "has more than 5,000,000 bytes", id="3 GB of nothing"),
        pytest.param(link("/dev/zero"), (1,), "is a link", id="a link to /dev/zero"),
        pytest.param(deep(500), (3,), "more than 64 folders deep", id="500 folders deep"),
        pytest.param(many(100_000, "{}.txt"), (0,), "1 contract", id="100,000 empty files"),
        pytest.param(
            many(100_000, "{}.odcs.yaml"), (3,), "more than 50,000 contracts", id="100,000 contracts"
        ),
        pytest.param(sparse(5_000_000), (1,), "NUL", id="zeros to the limit"),
    ],
)
def test_what_is_large_costs_neither_memory_nor_time(home: Home, plant, codes, says) -> None:
    _, _, usual_seconds, _ = measured("validate registry")
    plant(home)

    for command in ("validate registry --policy ../policy.yaml", "fmt --check registry", "doctor"):
        (home.folder.parent / "policy.yaml").write_text("profile: default\n")
        code, kilobytes, seconds, said = measured(command)
        assert kilobytes < 200_000, command
        assert seconds < 10 * usual_seconds, (command, said)
        if command.startswith("validate"):
            assert code in codes, said
            assert says in " ".join(said.split())


def test_rights_are_kept_by_the_system_and_said_by_the_gate(tmp_path_factory) -> None:
    """Root may read everything, so that what it may not is asked as somebody else."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become nobody")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    (folder / "closed").mkdir()
    (folder / "closed" / "inner.odcs.yaml").write_text(CONTRACT.format(id="inner"))
    (folder / "closed").chmod(0)
    no_rights(folder / "trick.odcs.yaml")
    (folder / "good.odcs.yaml").write_text(CONTRACT.format(id="good"))
    program = (
        # Once as root, which imports what nobody may not read.
        "import os, sys; from dq.cli.main import run;"
        f"os.chdir({str(folder)!r}); sys.stdout = open(os.devnull, 'w');"
        "run(['validate', 'trick.odcs.yaml', '--format', 'json']);"
        "sys.stdout = sys.__stdout__; os.setgid(65534); os.setuid(65534);"
        "sys.exit(run(['validate', '.', '--format', 'json']))"
    )
    try:
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)

    said = {(one["file"], one["rule"]) for one in json.loads(ran.stdout)["findings"]}
    assert {("closed", "file-unreadable"), ("trick.odcs.yaml", "file-unreadable")} <= said
    assert ran.returncode == 3


def test_a_hard_link_is_a_file_like_any_other_and_fmt_leaves_its_other_name_alone(home: Home) -> None:
    """Nobody can tell it from a file, and Git does not carry one."""
    home.trick.hardlink_to(home.secret)

    run(["fmt", "registry"])

    assert home.secret.read_text() == SECRET


def test_a_disk_that_is_full_leaves_a_contract_as_it_is_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "orders.odcs.yaml"
    file.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(files.FileRejected, match="cannot be written"):
            files.replace(files.file_ref(file), b"before", b"after" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {file.name: b"before"}


def test_a_mount_is_read_like_a_folder(home: Home) -> None:
    """No commit makes one: it is the operator's."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("only root mounts")
    (home.registry / "mounted").mkdir()
    mount = "mount -t tmpfs tmpfs registry/mounted && cp registry/good.odcs.yaml registry/mounted/"
    program = "import sys; from dq.cli.main import run; sys.exit(run(['validate', 'registry']))"

    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$0" -c "$1"', sys.executable, program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert "2 contracts: 1 error" in ran.stdout, ran.stderr


@pytest.mark.parametrize("place", ["/proc/self", "/sys/class", "/sys/kernel"])
def test_a_folder_of_the_system_that_the_user_names_ends_too(home: Home, place: str, capfd) -> None:
    with woken(place):
        assert run(["validate", place]) == 3

    assert "contains no contract" in capfd.readouterr().err


POLICIES = {
    "a link": lambda path, home: path.symlink_to(home.secret),
    "a link to nothing": lambda path, home: path.symlink_to("nothing"),
    "a pipe": lambda path, home: os.mkfifo(path),
    "a folder": lambda path, home: path.mkdir(),
    "3 GB": lambda path, home: os.truncate(os.open(path, os.O_WRONLY | os.O_CREAT), 3_000_000_000),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_a_policy_that_is_no_plain_file_is_refused_and_not_taken_for_none(
    home: Home, kind: str, capfd
) -> None:
    POLICIES[kind](home.registry / "dq-policy.yaml", home)

    with woken(kind):
        code = run(["validate", "registry"])

    out, err = capfd.readouterr()
    assert code == 3, (out, err)
    assert CANARY not in out + err
    assert "dq-policy.yaml" in err


@pytest.mark.parametrize("name", ["out.sarif", "sub/out.sarif"])
@pytest.mark.parametrize("target", ["secret.odcs.yaml", "made"])
def test_a_report_is_not_written_through_a_link(home: Home, name: str, target: str, capfd) -> None:
    if "/" in name:
        (home.folder / "sub").symlink_to(home.outside)
    else:
        (home.folder / name).symlink_to(home.outside / target)
    before = seen_in(home.outside)

    assert run(["validate", "registry", "--report", f"sarif={name}"]) == 2

    assert seen_in(home.outside) == before
    assert "is a link" in capfd.readouterr().err


def test_init_makes_no_file_where_a_link_leads(home: Home) -> None:
    (home.registry / "new.odcs.yaml").symlink_to(home.outside / "made")
    before = seen_in(home.outside)

    assert run(words_of(COMMANDS[-2], "new.odcs.yaml")) == 2

    assert seen_in(home.outside) == before


SAMPLES = {
    "a link": (lambda path, home: path.symlink_to(home.secret), 3),
    "a link to /dev/zero": (lambda path, home: path.symlink_to("/dev/zero"), 3),
    "a pipe": (lambda path, home: os.mkfifo(path), 3),
    "a folder": (lambda path, home: path.mkdir(), 3),
    "3 GB": (POLICIES["3 GB"], 2),
}


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_that_is_no_plain_file_is_refused(home: Home, kind: str, ending: str, capfd) -> None:
    plant, expected = SAMPLES[kind]
    plant(home.folder / f"rows{ending}", home)

    with woken(kind):
        code = run(["sample", "registry/good.odcs.yaml", f"rows{ending}"])

    out, err = capfd.readouterr()
    assert code == expected, (out, err)
    assert CANARY not in out + err
    assert f"rows{ending}" in err


def test_subscriptions_that_are_links_are_refused(home: Home, capfd) -> None:
    (home.folder / "subscriptions").mkdir()
    (home.folder / "subscriptions" / "a.yaml").symlink_to(home.secret)
    good = "registry/good.odcs.yaml"

    assert run(["diff", good, good, "--subscriptions", "subscriptions"]) == 3

    said = capfd.readouterr()
    assert "subscriptions/a.yaml is a link" in said.err
    assert CANARY not in said.out + said.err


def test_a_contract_that_the_caller_of_python_names_may_be_a_link(home: Home) -> None:
    home.trick.symlink_to("good.odcs.yaml")

    assert parse.read(home.trick).id == "good"


@pytest.mark.parametrize("target", ["/dev/zero", "{pipe}"])
def test_a_contract_that_the_caller_of_python_names_is_a_plain_file_in_the_end(
    home: Home, target: str
) -> None:
    os.mkfifo(home.outside / "pipe")
    home.trick.symlink_to(target.format(pipe=home.outside / "pipe"))

    with woken(target), pytest.raises(ReadError, match="is not read"):
        parse.read(home.trick)


def test_the_working_folder_may_be_reached_through_a_link(home: Home, monkeypatch, capfd) -> None:
    (home.outside / "here").symlink_to(home.folder)
    monkeypatch.chdir(home.outside / "here")

    for named in (
        "registry",
        str(home.outside / "here" / "registry"),
        str(home.outside / "here" / "registry" / TRICK),
    ):
        contract(TRICK)(home) if not home.trick.exists() else None
        assert run(["validate", named]) == 0, capfd.readouterr()


def test_without_open_folders_real_paths_are_compared(home: Home, monkeypatch, capfd) -> None:
    """What Windows has: the system cannot open relative to a folder."""
    monkeypatch.setattr(os, "supports_dir_fd", set())
    link("{secret}")(home)
    link("{outside}", "sub")(home)
    (home.registry / "messy.odcs.yaml").write_text("id: a\nkind: DataContract\n")
    before = seen_in(home.outside)

    codes = [
        run(words.split())
        for words in ("validate registry --report json=out/a.json", "fmt registry", "status registry")
    ]

    out, err = capfd.readouterr()
    assert codes == [1, 1, 3], err
    assert CANARY not in out + err
    assert "trick.odcs.yaml is a link" in out + err
    assert seen_in(home.outside) == before
    assert (home.registry / "messy.odcs.yaml").read_text() == "kind: DataContract\nid: a\n"
    assert (home.folder / "out" / "a.json").exists()


@pytest.mark.parametrize("words", ["validate registry", "validate registry --base HEAD~1"])
def test_a_link_in_a_pull_request_brings_no_line_of_the_secret_into_a_report(
    home: Home, words: str, capfd
) -> None:
    link("../../outside/secret.odcs.yaml")(home)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for step in (("add", "."), ("commit", "--quiet", "--message", "b")):
        subprocess.run(["git", *who, *step], cwd=home.folder, check=True, capture_output=True)

    code = run([*words.split(), "--report", "sarif=dq.sarif"])

    out, err = capfd.readouterr()
    assert CANARY not in (home.folder / "dq.sarif").read_text() + out + err
    assert code == 1
    assert "trick.odcs.yaml" in (home.folder / "dq.sarif").read_text()


def test_fmt_writes_nothing_where_a_link_leads(home: Home) -> None:
    link("{secret}")(home)

    assert run(["fmt", "registry"]) == 1

    assert home.secret.read_text() == SECRET


def test_fmt_keeps_what_somebody_else_writes_meanwhile(home: Home) -> None:
    file = files.FileRef(home.registry, "good.odcs.yaml")
    before = files.read(file)
    file.path.write_text("id: other\n")

    with pytest.raises(files.FileRejected, match="changed by another process"):
        files.replace(file, before, b"id: mine\n")

    assert file.path.read_text() == "id: other\n"
    assert [one.name for one in home.registry.iterdir()] == ["good.odcs.yaml"]


@pytest.mark.parametrize(
    "name",
    [
        "../secret.odcs.yaml",
        "/etc/passwd",
        "a/../../b",
        "",
        ".",
        "a\0b",
        "sub/../../outside/secret.odcs.yaml",
    ],
)
def test_a_name_that_leads_out_of_the_root_opens_nothing(home: Home, name: str) -> None:
    with pytest.raises(files.FileRejected):
        files.read(name, root=home.registry)


def test_a_file_is_read_by_its_name_below_the_root(home: Home) -> None:
    (home.registry / "a" / "b").mkdir(parents=True)
    (home.registry / "a" / "b" / "c.yaml").write_text("x")

    assert files.read("a/b/c.yaml", root=home.registry) == b"x"
    with pytest.raises(files.FileMissing):
        files.read("a/b/d.yaml", root=home.registry)
    with pytest.raises(files.NotARegularFile):
        files.read("a/b", root=home.registry)


def test_files_that_are_read_together_are_read_and_rejected_as_alone(home: Home) -> None:
    below = home.registry / "a" / "b"
    below.mkdir(parents=True)
    for name in ("1.yaml", "2.yaml"):
        (below / name).write_text(name)
    (below / "link.yaml").symlink_to(home.secret)
    os.mkfifo(below / "pipe.yaml")
    (home.registry / "linked").symlink_to(home.outside)
    (below / "large.yaml").write_bytes(bytes(files.MAX_BYTES + 1))
    names = [
        "a/b/1.yaml", "a/b/2.yaml", "a/b/link.yaml", "a/b/pipe.yaml", "a/b/large.yaml", "a/b/none.yaml",
        "a/b", "linked/secret.odcs.yaml", "none/1.yaml", "../outside/secret.odcs.yaml", "/etc/passwd", "",
        "a/./b//2.yaml", "a/b/1.yaml/x",
    ]  # fmt: skip
    refs = [files.FileRef(home.registry, name) for name in names]
    refs.append(files.FileRef(home.registry, "a/b/1.yaml", files.FileMissing("rejected before", "")))

    def alone(ref: files.FileRef) -> object:
        try:
            return files.read(ref)
        except files.FileRejected as rejection:
            return type(rejection), str(rejection)

    together = [
        content if isinstance(content, bytes) else (type(content), str(content))
        for content in files.read_each(refs)
    ]

    assert together == [alone(ref) for ref in refs]
    assert together[:2] == [b"1.yaml", b"2.yaml"]
    assert [isinstance(content, bytes) for content in together].count(True) == 3
