"""dq from Python: `import dq`, then `dq.check("orders.odcs.yaml", frame).raise_for_status()`.

`load`, `validate` and `diff` need no extra and no Spark.

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib

# As typing has it: under `python -m dq`, a typing.py of the working folder would come first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dq.cli.checking.library import backtest, check
    from dq.cli.checking.proposed import propose
    from dq.cli.checking.sampling import sample
    from dq.cli.gating.library import diff, validate
    from dq.cli.monitoring.cycle import CycleStanding, cycle
    from dq.cli.monitoring.standings import PromisesStanding, status
    from dq.cli.publishing.delivering import Delivered
    from dq.cli.publishing.library import publish
    from dq.contracts.model import Contract
    from dq.contracts.shared.outcome import DqError, Finding
    from dq.contracts.sql.text import text as sql_text
    from dq.contracts.yaml.parse import BrokenContract
    from dq.contracts.yaml.parse import read as load
    from dq.dataquality.api import gate, split
    from dq.dataquality.backtest.report import Backtest
    from dq.dataquality.clauses.plugins import Broken, Given, Measure, Question
    from dq.dataquality.local.pandera.export import left_out, schema
    from dq.dataquality.model.column import Column
    from dq.dataquality.model.metric import aggregate
    from dq.dataquality.proposal.facts import Proposal
    from dq.dataquality.proposal.propose import Proposed
    from dq.dataquality.quarantine import GatedRows
    from dq.dataquality.report import Report, Violated

    __version__: str

__all__ = [
    "Backtest", "Broken", "BrokenContract", "Column", "Contract", "CycleStanding", "Delivered",
    "DqError", "Finding", "GatedRows", "Given", "Measure", "PromisesStanding", "Proposal", "Proposed",
    "Question", "Report", "Violated", "aggregate", "backtest", "check", "cycle", "diff", "gate",
    "left_out", "load", "propose", "publish", "sample", "schema", "split", "sql_text", "status",
    "validate",
]  # fmt: skip

_HOMES = {
    "DqError": "dq.contracts.shared.outcome",
    # A contract, and what the gate says of it.
    "Contract": "dq.contracts.model",
    "BrokenContract": "dq.contracts.yaml.parse",
    "Finding": "dq.contracts.shared.outcome",
    "load": "dq.contracts.yaml.parse",
    "validate": "dq.cli.gating.library",
    "diff": "dq.cli.gating.library",
    # What a pipeline calls.
    "Report": "dq.dataquality.report",
    "Violated": "dq.dataquality.report",
    "GatedRows": "dq.dataquality.quarantine",
    "check": "dq.cli.checking.library",
    "backtest": "dq.cli.checking.library",
    "Backtest": "dq.dataquality.backtest.report",
    "sample": "dq.cli.checking.sampling",
    "gate": "dq.dataquality.api",
    "split": "dq.dataquality.api",
    "propose": "dq.cli.checking.proposed",
    "Proposed": "dq.dataquality.proposal.propose",
    "Proposal": "dq.dataquality.proposal.facts",
    "publish": "dq.cli.publishing.library",
    "Delivered": "dq.cli.publishing.delivering",
    # How promises stand, and what a consumer waits for.
    "PromisesStanding": "dq.cli.monitoring.standings",
    "status": "dq.cli.monitoring.standings",
    "CycleStanding": "dq.cli.monitoring.cycle",
    "cycle": "dq.cli.monitoring.cycle",
    # Schemas of pandera.
    "left_out": "dq.dataquality.local.pandera.export",
    "schema": "dq.dataquality.local.pandera.export",
    # The words of a check in a package of one's own.
    **dict.fromkeys(("Broken", "Given", "Measure", "Question"), "dq.dataquality.clauses.plugins"),
    "Column": "dq.dataquality.model.column",
    "aggregate": "dq.dataquality.model.metric",
    "sql_text": "dq.contracts.sql.text",
}
_THERE = {"sql_text": "text", "load": "read"}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        from dq.contracts.shared.install import NAME

        return version(NAME)
    if name not in _HOMES:
        raise AttributeError(f"module 'dq' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), _THERE.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)
