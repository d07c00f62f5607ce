"""dq doctor"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import typer

from dq.cli.options import ACCOUNT, ROLE
from dq.cli.terminal import output
from dq.operations import doctor
from dq.operations import doctor as outside
from dq.operations import doctor as state
from dq.operations.doctor import Look, looks
from dq.operations.runtime.context import World, here

# What is looked at, in this order, and how many seconds each may take. A channel may take ten for itself.
ASPECTS: tuple[tuple[str, Callable[[World], Iterable[Look]], float], ...] = (
    ("installed", doctor.everything, 20),
    ("Java", doctor.java, 20),
    ("Spark", doctor.jars, 20),
    ("settings", outside.settings, 20),
    ("store", state.store, 60),
    ("alerts", state.alerts, 60),
    ("channels", outside.channels, 60),
    ("lake", outside.lake, 60),
    ("registry", outside.registry, 20),
)
# Hive is asked by a Spark that has to be started first.
_CATALOG_SECONDS = 120


def command(
    catalog: str = typer.Option(
        None, "--catalog", help="Also ask this catalog: local, hive, glue or iceberg."
    ),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    format: output.Format = output.FORMAT,
) -> None:
    """Say what is installed, what is missing or broken, and the exact command that mends it.

    Looks at the extras, Java, the state store, alerts that wait, channels, the lake roots and, with
    --catalog, a catalog. Nothing is sent, upgraded or changed. Every row appears, also where one cannot be
    answered in time.

    Exit codes: 0 nothing that is needed is missing, 3 something is broken.

    Example: dq doctor --catalog glue
    """
    world = here()
    found = [look for what, ask, seconds in ASPECTS for look in looks(what, partial(ask, world), seconds)]
    if catalog is not None:
        asked = partial(outside.catalog, world, catalog, role_arn, catalog_id)
        found += looks("catalog", asked, _CATALOG_SECONDS)
    if format is output.Format.JSON:
        output.as_json(
            [{"what": one.what, "ok": one.good, "seen": one.seen, "mend": one.mend} for one in found]
        )
    else:
        for one in found:
            sign = output.styled("–", fg="yellow") if one.good is None else output.mark(one.good)
            output.line(f"  {sign} {one.what:<16} {one.seen}")
            if one.mend:
                output.line(f"      {one.mend}")
    raise typer.Exit(3 if any(one.good is False for one in found) else 0)
