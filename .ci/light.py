"""Installs the wheel without extras into bare environments and uses it, with a line for each Python.

.ci/light.py [PYTHON ...]     by default every Python from 3.11 on that is at hand, one of each release
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fakes import light, pages, wheel  # noqa: E402


def main(pythons: Sequence[str]) -> int:
    code = 0
    print(
        f"{'Python':<8}{'packages':>10}{'MB':>8}{'seconds':>9}  (of dq validate of one contract)", flush=True
    )
    with tempfile.TemporaryDirectory(prefix="dq-light-") as name:
        built = wheel.built(Path(name))
        for base in [Path(python) for python in pythons] or light.bases():
            here = Path(tempfile.mkdtemp(dir=name))
            installed = light.install(built, here / "env", base)
            (here / "work").mkdir()
            for page in ("tutorial", "tutorial-delivery"):
                (here / page).mkdir()
            wrong = light.problems(installed, here / "work")
            delivery, hour = ROOT / "docs/tutorial-delivery.md", ROOT / "docs/tutorial.md"
            pages.follow(delivery, here / delivery.stem, installed.python, together=True)
            seconds = light.seconds(installed, here / "work")
            light.install_more(installed, light.told_to_install(hour, built)[0])
            pages.follow(hour, here / hour.stem, installed.python, together=True, spark=False)
            print(
                f"{installed.version:<8}{installed.packages:>10}{installed.megabytes:>8.0f}{seconds:>9.2f}  "
                + ("all passed" if not wrong else f"{len(wrong)} FAILED"),
                *wrong,
                sep="\n\n" if wrong else "",
                flush=True,
            )
            code = code or int(bool(wrong))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
