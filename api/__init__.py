"""dq from Python: `import dq`, then `dq.check("orders.odcs.yaml", frame).raise_for_status()`.

`load`, `validate` and `diff` need no extra and no Spark.

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib

# Not imported from typing: under `python -m dq`, a typing.py in the working folder would be imported first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dq.contracts.model import Contract
    from dq.contracts.outcome import DqError, Finding
    from dq.contracts.sql.text import text as sql_text
    from dq.contracts.yaml.parse import BrokenContract
    from dq.contracts.yaml.parse import read as load
    from dq.dataquality.backtest import Backtest
    from dq.dataquality.clauses.plugins import Broken, Measure, Question, RuleInput
    from dq.dataquality.complete_through import CompleteThrough
    from dq.dataquality.model.column import Column
    from dq.dataquality.model.metric import aggregate
    from dq.dataquality.pandera import left_out, schema
    from dq.dataquality.propose import Proposed
    from dq.dataquality.proposed_rules import Proposal
    from dq.dataquality.quarantine import GatedRows
    from dq.dataquality.reconcile.outcome import Reconciliation
    from dq.dataquality.report import Report, Unmeasured, Violated
    from dq.operations.audit import AuditOutcome, ReplayOutcome, audit, replay
    from dq.operations.authoring import FmtOutcome, InitOutcome, fmt, init
    from dq.operations.backtest import BacktestOutcome, backtest_contracts
    from dq.operations.check_contracts import CheckOutcome, check_contracts
    from dq.operations.codeowners import CodeownersOutcome, codeowners
    from dq.operations.deliveries import (
        BacktestDeliveriesOutcome,
        ProposeDeliveriesOutcome,
        backtest_deliveries,
        propose_deliveries,
    )
    from dq.operations.demo import DemoOutcome, DemoTable, demo, demo_tables
    from dq.operations.demo_aws import AwsDemoOutcome, demo_aws
    from dq.operations.diff import diff
    from dq.operations.discover import DiscoverOutcome, discover
    from dq.operations.discovered_table import DiscoveredTable
    from dq.operations.doctor import DoctorOutcome, doctor
    from dq.operations.emr import emr
    from dq.operations.erasure import FindErasureOutcome, PlanErasureOutcome, find_erasure, plan_erasure
    from dq.operations.erasure_certificate import (
        ProveErasureOutcome,
        VerifyErasureOutcome,
        prove_erasure,
        verify_erasure,
    )
    from dq.operations.explain import ExplainOutcome, RulesOutcome, explain, rules
    from dq.operations.export import ExportOutcome, export
    from dq.operations.frames import backtest, check, gate, split
    from dq.operations.import_ import ImportOutcome, import_
    from dq.operations.incidents import (
        AckOutcome,
        AlertTestOutcome,
        IncidentsOutcome,
        OutboxOutcome,
        SilenceOutcome,
        acknowledge,
        incidents,
        outbox,
        send_test_alert,
        silence,
    )
    from dq.operations.link import LinkOutcome, link
    from dq.operations.metrics import metrics
    from dq.operations.output_schemas import json_schema
    from dq.operations.portal import PortalOutcome, build_portal
    from dq.operations.propose import ProposeOutcome, propose, propose_contract
    from dq.operations.publish import Delivered, PendingOutcome, publish, publish_pending
    from dq.operations.reconcile import ReconcileOutcome, reconcile, reconcile_servers
    from dq.operations.register import RegisterOutcome, register
    from dq.operations.repair import RepairOutcome, repair
    from dq.operations.sample import sample
    from dq.operations.schedule import (
        ConvertOutcome,
        DeliveriesOutcome,
        DuesOutcome,
        ExcuseOutcome,
        convert_schedule,
        excuse,
        next_deliveries,
        next_dues,
    )
    from dq.operations.status import CycleStanding, PromisesStanding, complete_through, cycle, status
    from dq.operations.store import (
        StorePruneOutcome,
        StoreUpgradeOutcome,
        check_store,
        copy_store,
        export_store,
        prune_store,
        upgrade_store,
    )
    from dq.operations.subscriptions import (
        SubscribeOutcome,
        SubscriptionsOutcome,
        list_subscriptions,
        subscribe,
    )
    from dq.operations.tables import TablesOutcome, tables
    from dq.operations.validate import validate
    from dq.operations.watch import WatchOutcome, watch

    __version__: str

__all__ = [
    "AckOutcome", "AlertTestOutcome", "AuditOutcome", "AwsDemoOutcome", "Backtest",
    "BacktestDeliveriesOutcome", "BacktestOutcome", "Broken", "BrokenContract", "CheckOutcome",
    "CodeownersOutcome", "Column", "CompleteThrough", "Contract", "ConvertOutcome", "CycleStanding",
    "Delivered", "DeliveriesOutcome", "DemoOutcome", "DemoTable", "DiscoverOutcome",
    "DiscoveredTable", "DoctorOutcome", "DqError", "DuesOutcome", "ExcuseOutcome", "ExplainOutcome",
    "ExportOutcome", "FindErasureOutcome", "Finding", "FmtOutcome", "GatedRows", "ImportOutcome",
    "IncidentsOutcome", "InitOutcome", "LinkOutcome", "Measure", "OutboxOutcome", "PendingOutcome",
    "PlanErasureOutcome", "PortalOutcome", "PromisesStanding", "Proposal",
    "ProposeDeliveriesOutcome", "ProposeOutcome", "Proposed", "ProveErasureOutcome", "Question",
    "ReconcileOutcome", "Reconciliation", "RegisterOutcome", "RepairOutcome", "ReplayOutcome",
    "Report", "RuleInput", "RulesOutcome", "SilenceOutcome", "StorePruneOutcome",
    "StoreUpgradeOutcome", "SubscribeOutcome", "SubscriptionsOutcome", "TablesOutcome",
    "Unmeasured", "VerifyErasureOutcome", "Violated", "WatchOutcome", "acknowledge", "aggregate",
    "audit", "backtest", "backtest_contracts", "backtest_deliveries", "build_portal", "check",
    "check_contracts", "check_store", "codeowners", "complete_through", "convert_schedule",
    "copy_store", "cycle", "demo", "demo_aws", "demo_tables", "diff", "discover", "doctor", "emr",
    "excuse", "explain", "export", "export_store", "find_erasure", "fmt", "gate", "import_",
    "incidents", "init", "json_schema", "left_out", "link", "list_subscriptions", "load", "metrics",
    "next_deliveries", "next_dues", "outbox", "plan_erasure", "propose", "propose_contract",
    "propose_deliveries", "prove_erasure", "prune_store", "publish", "publish_pending", "reconcile",
    "reconcile_servers", "register", "repair", "replay", "rules", "sample", "schema",
    "send_test_alert", "silence", "split", "sql_text", "status", "subscribe", "tables",
    "upgrade_store", "validate", "verify_erasure", "watch",
]  # fmt: skip

# Defining module of each exported name.
_MODULES: dict[str, tuple[str, ...]] = {
    "dq.contracts.outcome": ("DqError", "Finding"),
    # Contracts and their validation.
    "dq.contracts.model": ("Contract",),
    "dq.contracts.yaml.parse": ("BrokenContract",),
    "dq.operations.validate": ("validate",),
    "dq.operations.diff": ("diff",),
    # Checks in pipelines.
    "dq.dataquality.report": ("Report", "Unmeasured", "Violated"),
    "dq.dataquality.quarantine": ("GatedRows",),
    "dq.dataquality.backtest": ("Backtest",),
    "dq.operations.frames": ("backtest", "check", "gate", "split"),
    "dq.operations.sample": ("sample",),
    "dq.operations.propose": ("ProposeOutcome", "propose", "propose_contract"),
    "dq.dataquality.propose": ("Proposed",),
    "dq.dataquality.proposed_rules": ("Proposal",),
    "dq.operations.publish": ("Delivered", "PendingOutcome", "publish", "publish_pending"),
    # Registries and catalogs.
    "dq.operations.audit": ("AuditOutcome", "ReplayOutcome", "audit", "replay"),
    "dq.operations.export": ("ExportOutcome", "export"),
    "dq.operations.import_": ("ImportOutcome", "import_"),
    "dq.operations.portal": ("PortalOutcome", "build_portal"),
    "dq.operations.register": ("RegisterOutcome", "register"),
    "dq.dataquality.reconcile.outcome": ("Reconciliation",),
    "dq.operations.reconcile": ("ReconcileOutcome", "reconcile", "reconcile_servers"),
    "dq.operations.repair": ("RepairOutcome", "repair"),
    "dq.operations.discover": ("DiscoverOutcome", "discover"),
    "dq.operations.discovered_table": ("DiscoveredTable",),
    "dq.operations.tables": ("TablesOutcome", "tables"),
    "dq.operations.erasure": ("FindErasureOutcome", "PlanErasureOutcome", "find_erasure", "plan_erasure"),
    "dq.operations.erasure_certificate": (
        "ProveErasureOutcome",
        "VerifyErasureOutcome",
        "prove_erasure",
        "verify_erasure",
    ),
    "dq.operations.explain": ("ExplainOutcome", "RulesOutcome", "explain", "rules"),
    "dq.operations.output_schemas": ("json_schema",),
    "dq.operations.emr": ("emr",),
    "dq.operations.doctor": (
        "DoctorOutcome",
        "doctor",
    ),
    "dq.operations.authoring": ("FmtOutcome", "InitOutcome", "fmt", "init"),
    "dq.operations.store": (
        *("StorePruneOutcome", "StoreUpgradeOutcome", "check_store", "copy_store", "export_store"),
        *("prune_store", "upgrade_store"),
    ),
    "dq.operations.subscriptions": (
        *("SubscribeOutcome", "SubscriptionsOutcome"),
        *("list_subscriptions", "subscribe"),
    ),
    "dq.operations.codeowners": ("CodeownersOutcome", "codeowners"),
    "dq.operations.demo": ("DemoOutcome", "DemoTable", "demo", "demo_tables"),
    "dq.operations.demo_aws": ("AwsDemoOutcome", "demo_aws"),
    "dq.operations.metrics": ("metrics",),
    "dq.operations.link": (
        "LinkOutcome",
        "link",
    ),
    "dq.operations.check_contracts": (
        "CheckOutcome",
        "check_contracts",
    ),
    "dq.operations.backtest": ("BacktestOutcome", "backtest_contracts"),
    "dq.operations.deliveries": (
        *("BacktestDeliveriesOutcome", "ProposeDeliveriesOutcome"),
        *("backtest_deliveries", "propose_deliveries"),
    ),
    # Delivery SLOs and incidents.
    "dq.operations.status": ("CycleStanding", "PromisesStanding", "complete_through", "cycle", "status"),
    "dq.dataquality.complete_through": ("CompleteThrough",),
    "dq.operations.watch": ("WatchOutcome", "watch"),
    "dq.operations.schedule": (
        *("ConvertOutcome", "DeliveriesOutcome", "DuesOutcome", "ExcuseOutcome"),
        *("convert_schedule", "excuse", "next_deliveries", "next_dues"),
    ),
    "dq.operations.incidents": (
        *("AckOutcome", "AlertTestOutcome", "IncidentsOutcome", "OutboxOutcome", "SilenceOutcome"),
        *("acknowledge", "incidents", "outbox", "send_test_alert", "silence"),
    ),
    # pandera schemas.
    "dq.dataquality.pandera": ("left_out", "schema"),
    # API for custom checks in plug-in packages.
    "dq.dataquality.clauses.plugins": ("Broken", "Measure", "Question", "RuleInput"),
    "dq.dataquality.model.column": ("Column",),
    "dq.dataquality.model.metric": ("aggregate",),
}
# Exported name -> (module, attribute of the module).
_HOMES = {name: (module, name) for module, names in _MODULES.items() for name in names} | {
    "load": ("dq.contracts.yaml.parse", "read"),
    "sql_text": ("dq.contracts.sql.text", "text"),
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        from dq.contracts.install import NAME

        return version(NAME)
    if name not in _HOMES:
        raise AttributeError(f"module 'dq' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
