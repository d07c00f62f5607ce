"""Machines of a cluster: network namespaces on a bridge, each with a root folder of its own in memory.

A node sees Java, Python and Spark of this machine, read-only, and no other file: not the checkout, not the
environment of the driver, not the files of other nodes. Everything is in namespaces of this process, so
nothing is left when it ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

NETWORK = "10.37.0"
DRIVER = f"{NETWORK}.1"
# In memory, and of these namespaces alone. Never delete it: folders of this machine are mounted in it.
FOLDER = Path("/run/cluster")
# Debian's Python: another patch release than the driver's, and without any package.
PYTHON = "/usr/bin/python3"
SPARK_HOME, WORK = "/opt/spark", "/work"
_MARK = "DQ_CLUSTER_NAMESPACES"


def is_in_namespaces() -> bool:
    """Return whether this program was started by `enter_namespaces`."""
    return _MARK in os.environ


def enter_namespaces() -> str:
    """Start this program again in namespaces of its own, without the network, and exit with its code.

    Return why this machine refuses them, if it does.
    """
    refused = ""
    for user in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        tried = subprocess.run(
            [*command, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False
        )
        if tried.returncode == 0:
            command += ["sh", "-c", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh"]
            sys.exit(subprocess.call([*command, sys.executable, *sys.argv], env=os.environ | {_MARK: "1"}))
        refused = tried.stderr.strip()
    return refused


@dataclass
class Node:
    """A machine: its name, its address, and its files as this process sees them."""

    name: str
    address: str
    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    is_cut: bool = field(default=False, init=False)

    def start(self, *command: str, core: int | None = None) -> subprocess.Popen[bytes]:
        """Start a program on the node, on one core or on all; its output goes to a file in its root."""
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen(
                [*pinned, *self._inside, *command], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program on the node, in the folder for work."""
        words = [f"{name}={text}" for name, text in environment.items()]
        return subprocess.run([*self._inside, *words, *command], capture_output=True, text=True, check=False)

    @property
    def _inside(self) -> list[str]:
        # The folder of the environment's programs comes first for `env`, which also changes the folder.
        settings = [f"{name}={text}" for name, text in self.environment.items()]
        return [
            *("ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"'),
            *(self.name, "chroot", str(self.root), "env", "-i", "-C", WORK, *settings),
        ]

    def log(self) -> str:
        return (self.root / "log").read_text("utf-8", "replace")

    def processes(self, program: str) -> Iterator[int]:
        """Yield the ids of the node's processes with this text in their command line."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True
        )
        for number in map(int, listed.stdout.split()):
            with suppress(OSError):
                if program in Path(f"/proc/{number}/cmdline").read_text("utf-8", "replace"):
                    yield number

    def signal(self, program: str, number: signal.Signals) -> int:
        """Send a signal to the node's processes with this text in their command line; return how many."""
        sent = 0
        for process in self.processes(program):
            with suppress(ProcessLookupError):
                os.kill(process, number)
                sent += 1
        return sent

    def cut(self) -> None:
        """Take the node's cable out; no connection is closed."""
        _run("ip", "link", "set", f"to-{self.name}", "down")
        self.is_cut = True

    def connect(self) -> None:
        """Put the cable in again."""
        _run("ip", "link", "set", f"to-{self.name}", "up")
        self.is_cut = False


def build(
    names: tuple[str, ...], programs: Mapping[str, Path], environment: Mapping[str, str]
) -> dict[str, Node]:
    """Return nodes of these names, connected to each other and to this process.

    `programs` are folders of this machine by their path on the nodes.
    """
    FOLDER.mkdir()
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "bridge", "type", "bridge")
    _run("ip", "addr", "add", f"{DRIVER}/24", "dev", "bridge")
    _run("ip", "link", "set", "bridge", "up")
    addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, 11)}
    hosts = FOLDER / "hosts"
    lines = [
        ("127.0.0.1", "localhost"),
        (DRIVER, os.uname().nodename),
        *((text, name) for name, text in addresses.items()),
    ]
    hosts.write_text("".join(f"{address} {name}\n" for address, name in lines), "utf-8")
    _run("mount", "--bind", str(hosts), "/etc/hosts")
    return {
        name: Node(
            name, address, _root(FOLDER / name, hosts, programs), _environment(address) | dict(environment)
        )
        for name, address in addresses.items()
        if _connect(name, address)
    }


@contextmanager
def limited(nodes: Iterable[Node], cores: float) -> Iterator[bool]:
    """Give all processes of each node a share of a core, and of programs they start; tell whether it can be.

    The kernel's control groups do it, of either version; others than root have none.
    """
    home = next((folder for folder in _GROUPS if (folder / "cgroup.procs").exists()), None)
    groups: list[Path] = []
    try:
        for node in nodes if home is not None and os.access(home, os.W_OK) else ():
            group = home / f"dq-{os.getpid()}-{node.name}"
            group.mkdir()
            groups.append(group)
            # Short periods, so that a process waits for a share of one and not of a tenth of a second.
            quota = str(int(_PERIOD * cores))
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
                (group / "cpu.cfs_quota_us").write_text(quota)
            _move(node.processes(""), group)
        yield bool(groups)
    finally:
        for group in groups:
            _move(map(int, (group / "cgroup.procs").read_text().split()), group.parent)
            group.rmdir()


_GROUPS, _PERIOD = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")), 20_000


def _move(processes: Iterable[int], group: Path) -> None:
    for number in processes:
        # It may have ended meanwhile.
        with suppress(OSError):
            (group / "cgroup.procs").write_text(str(number))


def _connect(name: str, address: str) -> bool:
    _run("ip", "netns", "add", name)
    _run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    _run("ip", "link", "set", f"to-{name}", "master", "bridge", "up")
    for words in (
        ("addr", "add", f"{address}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("link", "set", "lo", "up"),
    ):
        _run("ip", "-n", name, *words)
    return True


def _root(root: Path, hosts: Path, programs: Mapping[str, Path]) -> Path:
    """Return a root folder in memory, with the programs of this machine and two empty folders."""
    root.mkdir(parents=True)
    _run("mount", "-t", "tmpfs", "tmpfs", str(root))
    shown = {"/usr": Path("/usr"), "/etc": Path("/etc"), "/dev": Path("/dev"), **programs}
    for path, source in shown.items():
        target = root / path.lstrip("/")
        target.mkdir(parents=True)
        _run("mount", "--bind", str(source), str(target))
        _run("mount", "-o", "remount,bind,ro", str(target))
    _run("mount", "--bind", str(hosts), str(root / "etc/hosts"))
    (root / "proc").mkdir()
    _run("mount", "-t", "proc", "proc", str(root / "proc"))
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    for name in ("tmp", "work"):
        (root / name).mkdir()
    return root


def _environment(address: str) -> dict[str, str]:
    java = Path(shutil.which("java") or "java").resolve().parents[1]
    return {
        "PATH": "/usr/bin:/bin:/usr/sbin",
        "LANG": "C.UTF-8",
        "JAVA_HOME": str(java),
        "SPARK_HOME": SPARK_HOME,
        "SPARK_LOCAL_IP": address,
        "SPARK_LOCAL_DIRS": f"{WORK}/local",
        "HOME": WORK,
        # The log of the daemons says what a node did when a run fails.
        "SPARK_DAEMON_MEMORY": "256m",
    }


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


# Spark's own cluster manager.


@dataclass
class Standalone:
    """A master and its workers; `url` is the address for `--master`."""

    master: Node
    workers: tuple[Node, ...]
    _registrations: dict[str, int] = field(default_factory=dict, init=False)

    @property
    def url(self) -> str:
        return f"spark://{self.master.address}:7077"

    def start(self) -> None:
        """Start the daemons: each worker has memory for one executor and a core, in turn."""
        program = f"{SPARK_HOME}/bin/spark-class", "org.apache.spark.deploy.master.Master"
        self.master.start(*program, "--host", self.master.address, "--webui-port", "0")
        for worker in self.workers:
            self.start_worker(worker)

    def stop(self) -> None:
        """End all processes of the nodes."""
        for node in (self.master, *self.workers):
            node.signal("", signal.SIGKILL)

    def start_worker(self, worker: Node) -> None:
        program = f"{SPARK_HOME}/bin/spark-class", "org.apache.spark.deploy.worker.Worker"
        worker.start(
            *(*program, "--host", worker.address, "--webui-port", "0"),
            *("--cores", "1", "--memory", "1g", "--work-dir", WORK, self.url),
            core=self.workers.index(worker) % (os.cpu_count() or 1),
        )
        self._registrations[worker.name] = worker.log().count(_REGISTERED) + 1

    def wait(self) -> None:
        """Wait until the master knows every worker that was started."""
        for worker in self.workers:
            _wait_for(_REGISTERED, worker, self._registrations[worker.name])


_REGISTERED = "Successfully registered with master"


def _wait_for(text: str, node: Node, times: int, seconds: float = 300) -> None:
    """Wait until the node's log has a text this many times."""
    end = time.monotonic() + seconds
    while node.log().count(text) < times:
        if time.monotonic() > end:
            raise SystemExit(f"{node.name} does not say {text!r}:\n{node.log()[-2_000:]}")
        time.sleep(0.2)
