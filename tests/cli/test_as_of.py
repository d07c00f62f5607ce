"""What was printed at an instant is printed again when that instant is asked for later (T25)."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest
from fakes.command import Place, contract

DAYS = ("2026-05-10T12:00:00Z", "2026-05-11T06:20:00Z", "2026-05-11T06:32:00Z")
LATER = ("2026-05-11T09:05:00Z", "2026-05-12T06:32:00Z", "2026-05-12T07:00:00Z", "2026-05-13T06:32:00Z")


@pytest.fixture
def place(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in os.environ:
        if name.startswith(("DQ_", "SLACK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DQ_STORE_URL", url)
    working = Place(tmp_path)
    working.put("registry/dq-policy.yaml", "{}")
    for name in ("orders", "refunds"):
        working.put(f"registry/{name}.odcs.yaml", contract(name))
        (tmp_path / "lake" / name).mkdir(parents=True)
    return working


def printed(place: Place, at: str) -> dict[str, object]:
    """What the commands print as of an instant; messages on their way are of no instant but now."""
    ran = place.dq("status", "registry", "--as-of", at, "--format", "json")
    assert ran.code == 0, ran.err
    status = ran.json
    status.pop("outstanding")
    page = place.dq("status", "registry", "--as-of", at)
    incidents = [
        place.dq("incidents", *more, "--as-of", at, "--format", "json").json for more in ((), ("--all",))
    ]
    site = f"site-{len(list(place.folder.glob('site-*')))}"
    built = place.dq("portal", "build", site, "registry", "--as-of", at)
    assert built.code == 0, built.err
    pages = [
        json.loads(path.read_text()) for path in sorted(place.folder.glob(f"{site}/products/*/status.json"))
    ]
    return {
        "status": status,
        "incidents": incidents,
        "page": page.out.split("Undelivered alerts")[0].rstrip(),
        "portal": pages,
    }


def deliver(place: Place, name: str, day: str, at: str) -> None:
    marker = place.put(f"lake/{name}/day={day}/_SUCCESS", "")
    os.utime(marker, (datetime.fromisoformat(at).timestamp(),) * 2)


def test_t25_a_past_instant_is_printed_as_it_was_then(place: Place) -> None:
    live: dict[str, dict[str, object]] = {}

    def tick(at: str) -> None:
        ran = place.dq("watch", "registry", "--as-of", at)
        assert ran.code in (0, 1, 4), ran.err
        live[at] = printed(place, at)

    deliver(place, "refunds", "2026-05-10", "2026-05-11T05:50:00Z")
    for at in DAYS:
        tick(at)
    deliver(place, "orders", "2026-05-10", "2026-05-11T09:00:00Z")
    tick(LATER[0])
    tick(LATER[1])
    acked = place.dq("ack", "orders", "--by", "ana", "--as-of", "2026-05-12T06:50:00Z")
    silenced = place.dq(
        "silence",
        "refunds",
        "--for",
        "2h",
        "--reason",
        "move",
        "--as-of",
        "2026-05-12T06:55:00Z",
        "--by",
        "ben",
    )
    tick(LATER[2])
    for name in ("orders", "refunds"):
        deliver(place, name, "2026-05-11", "2026-05-12T10:00:00Z")
    tick(LATER[3])
    excused = place.dq(
        "excuse",
        "registry/orders.odcs.yaml",
        "--from",
        "2026-05-11T00:00Z",
        "--to",
        "2026-05-12T00:00Z",
        "--reason",
        "strike",
        "--by",
        "cy",
    )

    again = {at: printed(place, at) for at in live}

    assert "excluded: 1" in excused.out, (acked, silenced, excused)
    for at, before in live.items():
        for what, text in before.items():
            assert again[at][what] == text, (at, what)
    assert live[DAYS[1]] != live[DAYS[2]] != live[LATER[0]] != live[LATER[1]] != live[LATER[2]]
