"""The processes that share a build: in order, and never longer there than the build."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from dq.portal.writing.crew import Crew

# A parent with two processes at work; it says which they are, and waits to be killed.
SCRIPT = """
import time
from dq.portal.writing.crew import Crew

if __name__ == "__main__":
    with Crew(2) as crew:
        found = crew.each(eval, ["(__import__('time').sleep(.3), __import__('os').getpid())[1]"] * 6)
        print(*{next(found) for _ in range(4)}, flush=True)
        time.sleep(60)
"""


def test_what_is_given_comes_in_order() -> None:
    with Crew(2) as crew:
        assert list(crew.each(str.upper, ["a", "b", "c", "d", "e"])) == ["A", "B", "C", "D", "E"]


def test_processes_end_with_a_build_that_is_killed(tmp_path) -> None:
    file = tmp_path / "build.py"
    file.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(one) for one in parent.stdout.readline().split()]
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while any(map(_lives, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert workers
    assert [one for one in workers if _lives(one)] == []


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
