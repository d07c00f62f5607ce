"""dq from Python: `import dq`, then `dq.check("orders.odcs.yaml", frame).raise_for_status()`.

`load`, `validate` and `diff` need no extra and no Spark.

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib

# As typing has it: under `python -m dq`, a typing.py of the working folder would come first.
TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from dq.operations.audit import AuditOutcome, audit
    from dq.operations.cycle import CycleStanding, cycle
    from dq.operations.export import ExportOutcome, export
    from dq.operations.frames import backtest, check
    from dq.operations.import_ import ImportOutcome, import_
    from dq.operations.portal import PortalOutcome, build_portal
    from dq.operations.propose import propose
    from dq.operations.publish import Delivered, publish
    from dq.operations.register import RegisterOutcome, register
    from dq.operations.repair import RepairOutcome, repair
    from dq.operations.replay import ReplayOutcome, replay
    from dq.operations.sample import sample
    from dq.operations.status import PromisesStanding, status
    from dq.operations.tables import TablesOutcome, tables
    from dq.operations.validate import diff, validate
    from dq.operations.watch import WatchOutcome, watch

    __version__: str

__all__ = [
    "AuditOutcome", "Backtest", "Broken", "BrokenContract", "Column", "Contract", "CycleStanding",
    "Delivered", "DqError", "ExportOutcome", "Finding", "GatedRows", "Given", "ImportOutcome",
    "Measure", "PortalOutcome", "PromisesStanding", "Proposal", "Proposed", "Question",
    "RegisterOutcome", "RepairOutcome", "ReplayOutcome", "Report", "TablesOutcome", "Violated",
    "WatchOutcome", "aggregate", "audit", "backtest", "build_portal", "check", "cycle", "diff",
    "export", "gate", "import_", "left_out", "load", "propose", "publish", "register", "repair",
    "replay", "sample", "schema", "split", "sql_text", "status", "tables", "validate", "watch",
]  # fmt: skip

_HOMES = {
    "DqError": "dq.contracts.shared.outcome",
    # A contract, and what the gate says of it.
    "Contract": "dq.contracts.model",
    "BrokenContract": "dq.contracts.yaml.parse",
    "Finding": "dq.contracts.shared.outcome",
    "load": "dq.contracts.yaml.parse",
    "validate": "dq.operations.validate",
    "diff": "dq.operations.validate",
    # What a pipeline calls.
    "Report": "dq.dataquality.report",
    "Violated": "dq.dataquality.report",
    "GatedRows": "dq.dataquality.quarantine",
    "check": "dq.operations.frames",
    "backtest": "dq.operations.frames",
    "Backtest": "dq.dataquality.backtest.report",
    "sample": "dq.operations.sample",
    "gate": "dq.dataquality.api",
    "split": "dq.dataquality.api",
    "propose": "dq.operations.propose",
    "Proposed": "dq.dataquality.proposal.propose",
    "Proposal": "dq.dataquality.proposal.facts",
    "publish": "dq.operations.publish",
    "build_portal": "dq.operations.portal",
    "PortalOutcome": "dq.operations.portal",
    "tables": "dq.operations.tables",
    "TablesOutcome": "dq.operations.tables",
    "import_": "dq.operations.import_",
    "ImportOutcome": "dq.operations.import_",
    "export": "dq.operations.export",
    "ExportOutcome": "dq.operations.export",
    "repair": "dq.operations.repair",
    "RepairOutcome": "dq.operations.repair",
    "replay": "dq.operations.replay",
    "ReplayOutcome": "dq.operations.replay",
    "audit": "dq.operations.audit",
    "AuditOutcome": "dq.operations.audit",
    "register": "dq.operations.register",
    "RegisterOutcome": "dq.operations.register",
    "Delivered": "dq.operations.publish",
    # How promises stand, and what a consumer waits for.
    "PromisesStanding": "dq.operations.status",
    "status": "dq.operations.status",
    "CycleStanding": "dq.operations.cycle",
    "cycle": "dq.operations.cycle",
    "watch": "dq.operations.watch",
    "WatchOutcome": "dq.operations.watch",
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
