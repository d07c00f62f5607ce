"""A registry of one product and of many that are made from it, each told in one of twenty channels."""

from __future__ import annotations

import os
from datetime import datetime

from fakes.command import Place, contract

TEAMS = 20
CHANNELS = {"#raw": "C0RAW00001", "#platform": "C0PLATFORM"} | {
    f"#team-{number:02}": f"C0TEAM{number:04}" for number in range(TEAMS)
}


class Mesh(Place):
    """`raw`, what is made from it, and a lake."""

    def made_from_raw(self, count: int) -> list[str]:
        """Writes the contracts; the names of all but `raw`."""
        names = [f"p{number:03}" for number in range(count)]
        (self.folder / "lake").mkdir()
        self.put("registry/dq-policy.yaml", "{}")
        self.put("registry/raw.odcs.yaml", contract("raw"))
        for number, name in enumerate(names):
            parts = {
                "servers:": "customProperties: [{property: inputs, value: [raw]}]\nservers:",
                f'"#{name}"': f'"#team-{number % TEAMS:02}"',
            }
            self.put(f"registry/{name}.odcs.yaml", contract(name, **parts))
        return names

    def came(self, name: str, day: str, at: str) -> None:
        """A day's marker, as if it was written at an instant."""
        marker = self.put(f"lake/{name}/day={day}/_SUCCESS", "")
        when = datetime.fromisoformat(at).timestamp()
        os.utime(marker, (when, when))

    def watch(self, at: str) -> None:
        """One tick of the real command."""
        ran = self.dq("watch", "registry", "--as-of", at)
        assert ran.code in (0, 1), ran.err
