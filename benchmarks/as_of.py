"""Output at an instant, against what `--as-of` prints of that instant later.

A watcher looks at a few products for weeks while deliveries come in time, late, again or never and are taken
away, and people acknowledge and silence incidents. After each look, or some time later, status, audit,
incidents and the portal's pages are printed; at the end everything is asked again for random instants.
Messages on their way are left out: they are of no instant but now. The goal is zero differences.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes import compiled, stores
from fakes.command import Place, contract, without_settings

BEGIN = datetime(2026, 3, 20, 12, tzinfo=UTC)
PRODUCTS = {"orders": (6, 90), "refunds": (6, 80), "visits": (7, 95), "stock": (9, 70), "prices": (11, 90)}

_SENT = re.compile(r'<section aria-labelledby="messages">.*?</section>', re.DOTALL)


class Scene:
    """A working folder with a registry, its lake and its store."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        place = Place(folder)
        self.folder, self.draw, self.dq = folder, draw, place.dq
        self.happened: Counter[str] = Counter()
        place.put("registry/dq-policy.yaml", "{}")
        for name, (hour, objective) in PRODUCTS.items():
            parts = {
                "0 6 * * *": f"0 {hour} * * *",
                "objective: 90%": f"objective: {objective}%, window: 10d",
            }
            place.put(f"registry/{name}.odcs.yaml", contract(name, **parts))
            (folder / "lake" / name).mkdir(parents=True)

    def change(self, now: datetime) -> None:
        """Deliveries of the last days that come, come again or are taken away, and what people do."""
        for name in PRODUCTS:
            for back in (1, 2, 3):
                day = f"{now - timedelta(days=back):%F}"
                marker = self.folder / "lake" / name / f"day={day}" / "_SUCCESS"
                chance = self.draw.random()
                if not marker.exists() and chance < (0.2 if back == 1 else 0.08):
                    self._deliver(marker, now, "delivered")
                elif marker.exists() and chance < 0.03:
                    self._deliver(marker, now, "delivered again")
                elif marker.exists() and chance > 0.98:
                    shutil.rmtree(marker.parent)
                    self.happened["taken away"] += 1
        at = ("--as-of", stamp(now))
        incidents = [entry["id"] for entry in self._document("incidents", *at)["incidents"]]
        if incidents and self.draw.random() < 0.15:
            ran = self.dq("ack", self.draw.choice(incidents), "--by", "ana", *at)
            self.happened["acknowledged"] += not ran.code
        if self.draw.random() < 0.08:
            name = self.draw.choice(list(PRODUCTS))
            ran = self.dq("silence", name, "--for", "5h", "--reason", "move", "--by", "ben", *at)
            self.happened["silenced"] += not ran.code

    def _deliver(self, marker: Path, now: datetime, what: str) -> None:
        marker.parent.mkdir(exist_ok=True)
        marker.write_text("")
        came = (now - timedelta(minutes=self.draw.randrange(1, 90))).timestamp()
        os.utime(marker, (came, came))
        self.happened[what] += 1

    def _document(self, *words: str) -> Any:
        return self.dq(*words, "--format", "json").json

    def printed(self, at: str, *, portal: bool) -> dict[str, object]:
        """Output of the commands as of an instant."""
        status = self._document("status", "registry", "--as-of", at)
        status.pop("outstanding")
        shown: dict[str, object] = {
            "status": status,
            "status as text": self.dq("status", "registry", "--as-of", at).out.split("Alerts that")[0],
            "audit": self._document("audit", "registry", "--as-of", at),
            "incidents": self._document("incidents", "--as-of", at),
            "incidents --all": self._document("incidents", "--all", "--as-of", at),
        }
        if portal:
            with tempfile.TemporaryDirectory() as name:
                self.dq("portal", "build", f"{name}/site", "registry", "--as-of", at)
                site = Path(name, "site")
                # The state for the next build is not a page.
                files = [
                    file for file in site.rglob("*") if file.is_file() and file.parent.name != ".dq-portal"
                ]
                shown["portal"] = {
                    str(file.relative_to(site)): _SENT.sub("", file.read_text()).splitlines()
                    for file in files
                }
        return shown


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def differences(before: object, after: object, path: str = "") -> list[str]:
    """Places at which two values of JSON differ."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return [
            difference
            for key in before
            for difference in differences(before[key], after[key], f"{path}/{key}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [
            difference for number, (b, a) in pairs for difference in differences(b, a, f"{path}/{number}")
        ]
    if isinstance(before, list) and isinstance(after, list):
        before, after = ([item for item in a if item not in b] for a, b in ((before, after), (after, before)))
    return [] if before == after else [f"{path}: {str(before)[:300]!r} -> {str(after)[:300]!r}"]


def main() -> int:
    args = arguments(__doc__ or "", seed="of the random draws")
    instants, portals = (40, 4) if args.quick else (200, 20)
    draw = random.Random(args.seed or 1)
    # A thousand commands in one process: no figure is a time.
    compiled.share()
    stores.hurry()
    for name in os.environ.keys() - without_settings().keys():
        del os.environ[name]
    wrong: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        scene = Scene(Path(temporary), draw)
        now, live = BEGIN, dict[str, dict[str, object]]()
        while len(live) < instants:
            scene.change(now)
            scene.dq("watch", "registry", "--as-of", stamp(now), "--channel", "console")
            # Somebody asks at once, or some time after the last look.
            now += timedelta(minutes=draw.choice((0, draw.randrange(1, 120))))
            live[stamp(now)] = scene.printed(stamp(now), portal=len(live) % (instants // portals) == 0)
            now += timedelta(minutes=draw.randrange(20, 280))
        for at in draw.sample(list(live), instants):
            repeated = scene.printed(at, portal="portal" in live[at])
            for what, before in live[at].items():
                changes = differences(before, repeated[what])
                wrong[what] += len(changes)
                for difference in changes[:2]:
                    if sum(wrong.values()) < 40:
                        print(f"{at} {what} {difference}")
    for what, count in sorted(scene.happened.items()):
        print(f"{what:<44}{count:>10}")
    metrics: dict[str, float] = {"instants": instants, "differences": sum(wrong.values())}
    return finish(metrics, {"differences": ("<", 0.5)}, args)


if __name__ == "__main__":
    sys.exit(main())
