"""`dq.json_schema`: JSON Schemas of input files, and of the output of commands with --format json."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dq.contracts.check_result import AnsweredBy, Status
from dq.contracts.incident import CycleStatus, DeliveryState
from dq.contracts.outcome import Severity, UsageError, suggestion

# Builders for JSON Schemas.

Schema = dict[str, object]

TEXT: Schema = {"type": "string"}
INT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOL: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}


def nullable(form: Schema) -> Schema:
    """Return the schema, or null."""
    return {"anyOf": [form, {"type": "null"}]}


def one_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def enum(*values: str) -> Schema:
    """Return the schema of one of these texts."""
    return {"enum": list(values)}


def array(form: Schema) -> Schema:
    return {"type": "array", "items": form}


def mapping(form: Schema) -> Schema:
    """Return the schema of an object with arbitrary keys, e.g. column names."""
    return {"type": "object", "additionalProperties": form}


def row(parts: dict[str, Schema]) -> Schema:
    """Return the schema of an object with these keys; keys ending in a question mark are optional.

    Later versions may add keys.
    """
    return {
        "type": "object",
        "required": [key for key in parts if not key.endswith("?")],
        "properties": {key.removesuffix("?"): form for key, form in parts.items()},
    }


# Output of each command with `--format json`.

SEVERITY = enum(*Severity)
STATUS = enum(*Status)
CYCLE_STATUS = enum(*CycleStatus)
PARTITION = mapping(ANY)
# Lines and columns count from 1; texts are empty if a finding has no contract or is about the whole file.
FINDING = row({
    "rule": TEXT, "severity": SEVERITY, "message": TEXT, "hint": TEXT, "file": TEXT, "line": INT,
    "column": INT, "path": TEXT, "contract": TEXT,
})  # fmt: skip
FINDINGS = array(FINDING)
FAULT = row({"rule": TEXT, "message": TEXT, "hint": TEXT})
DUE_CYCLES = row({"due_at": INSTANT, "partitions": array(TEXT), "text": TEXT})
DELIVERY = {"contract": TEXT, "object": TEXT, "slo": TEXT, "due_at": INSTANT}
CLAUSE = row({
    "clause": TEXT, "object": TEXT, "property": nullable(TEXT), "description": TEXT, "state": TEXT,
    "reason": TEXT, "at": TEXT,
})  # fmt: skip
RESULT = row({
    "status": STATUS, "severity": SEVERITY, "check": TEXT,
    "target": row({"object": TEXT, "property": nullable(TEXT)}), "clause": TEXT, "name": TEXT,
    "answered_by": nullable(enum(*AnsweredBy)),
    "measure": row({"value": nullable(NUMBER), "observed": TEXT}), "threshold": TEXT, "message": TEXT,
    "at": TEXT, "samples": array(mapping(ANY)), "groups?": array(mapping(ANY)),
})  # fmt: skip
GOVERNED = row({
    "steps": array(row({
        "kind": TEXT, "description": TEXT, "outcome": nullable(enum("done", "failed")),
        "error": nullable(TEXT),
    })),
    "notes": array(TEXT), "error": nullable(TEXT),
})  # fmt: skip
REPORT = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "partitions": array(PARTITION),
    "at": nullable(INSTANT), "rules": array(TEXT), "rows": nullable(INT),
    "passes": INT, "from_statistics": INT, "from_cache": INT,
    "counts": mapping(INT), "results": array(RESULT),
    "clauses": array(CLAUSE), "quarantine": nullable(mapping(ANY)), "cleaned": nullable(mapping(ANY)),
    "notes": array(TEXT),
    "verification": nullable(mapping(ANY)), "error?": {"type": "null"},
})  # fmt: skip
UNTESTED = row({
    "contract": nullable(TEXT), "version": nullable(TEXT), "object": nullable(TEXT),
    "partitions": array(PARTITION), "results": {"type": "array", "maxItems": 0}, "error": TEXT,
})  # fmt: skip
OUTLINE = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "partitions": array(PARTITION), "rules": array(TEXT),
    "passes": array(row({
        "rows": TEXT, "kind": TEXT, "description": TEXT, "questions": INT, "clauses": array(TEXT)
    })),
    "errors": array(row({"clause": TEXT, "reason": TEXT})), "untested": array(CLAUSE),
    "error?": {"type": "null"},
})  # fmt: skip
OUTSTANDING = row({
    "channel": TEXT, "target": TEXT, "messages": INT, "since": INSTANT, "reason": TEXT, "refused": BOOL,
})  # fmt: skip
SILENCE = row({"pattern": TEXT, "reason": TEXT, "by": TEXT, "at": INSTANT, "until": INSTANT})
_INCIDENT = {
    "id": TEXT, "contract": TEXT, "object": TEXT, "group": TEXT, "state": TEXT, "severity": SEVERITY,
    "title": TEXT, "opened_at": INSTANT, "resolved_at": nullable(INSTANT), "acked_at": nullable(INSTANT),
    "acked_by": nullable(TEXT), "silenced_until": nullable(INSTANT), "silence_reason": nullable(TEXT),
    "root": nullable(TEXT), "inhibits": array(TEXT), "flapping_since": nullable(INSTANT), "breaches": INT,
    "open": array(TEXT),
    "consumer": nullable(row({"team": TEXT, "channel": TEXT, "cause": TEXT, "subscription": TEXT})),
}  # fmt: skip
STEP = row({"at": INSTANT, "kind": TEXT, "revision": INT, "subject": TEXT, "detail": TEXT})
CYCLE = {
    "due_at": INSTANT, "breach_at": INSTANT, "status": CYCLE_STATUS, "delivered_at": nullable(INSTANT),
    "source": nullable(TEXT), "first_seen_at": nullable(INSTANT), "arriving_since": nullable(INSTANT),
    "gone_since": nullable(INSTANT), "delivered_anew_at": nullable(INSTANT),
    "evidence": array(row({"source": TEXT, "delivered_at": INSTANT, "rows": nullable(INT)})),
    "disagreeing": array(TEXT),
}  # fmt: skip
PROMISE = row({
    "contract": TEXT, "object": TEXT, "slo": TEXT, "objective": NUMBER, "attainment": nullable(NUMBER),
    "good": INT, "bad": INT, "allowed": INT, "budget": TEXT,
    "streak": nullable(row({"length": INT, "good": BOOL})), "trend": nullable(NUMBER),
    "usual_minutes": nullable(NUMBER), "availability": nullable(NUMBER), "burn_rates": array(TEXT),
    "warnings": nullable(row({
        "at_risk_since": nullable(INSTANT),
        "at_risk": array(row({"due_at": INSTANT, "breach_at": INSTANT, "warned_at": INSTANT})),
        "warned_then_late": INT, "warned_then_on_time": INT, "late_without_warning": INT, "silent": TEXT,
        "warned": array(row({"due_at": INSTANT, "warned_at": INSTANT})),
    })),
    "cycles": array(row(CYCLE)),
})  # fmt: skip
LINE_OF_LOG = row({
    "at": TEXT, "run": TEXT, "registry": TEXT, "catalog": TEXT, "table": TEXT, "kind": TEXT, "impact": TEXT,
    "outcome": TEXT, "before": TEXT, "after": TEXT, "error": TEXT,
})  # fmt: skip
ACTION = row({
    "table": TEXT, "kind": TEXT, "impact": TEXT, "note": TEXT, "outcome": nullable(TEXT),
    "error": nullable(TEXT),
    "changes": array(row({
        "field": TEXT, "name": TEXT, "before": ANY, "after": ANY, "impact": TEXT, "rule": TEXT,
        "drift": BOOL,
    })),
})  # fmt: skip
CHANGE = row({
    "rule": TEXT, "contract": TEXT, "path": TEXT, "attribute": TEXT, "before": ANY, "after": ANY,
    "effect": TEXT, "severity": SEVERITY, "mode": TEXT, "verdict": TEXT, "concern": TEXT,
    "affected": array(TEXT), "consumers": array(mapping(ANY)), "bump": TEXT, "message": TEXT,
    "alternative": TEXT, "required_version": TEXT, "against": TEXT, "waived": TEXT, "at": TEXT,
    "at_before": TEXT, "fingerprint": TEXT,
})  # fmt: skip
PAGE = row({
    "id": TEXT, "kind": enum("rule", "change", "custom check"), "severity": nullable(SEVERITY),
    "summary": TEXT, "why": TEXT, "bad": TEXT, "good": TEXT, "hint": TEXT,
    "arguments": array(row({"name": TEXT, "description": TEXT, "default": ANY})),
})  # fmt: skip
CHANGED = row({
    **DELIVERY, "partitions": array(TEXT), "before": CYCLE_STATUS, "after": CYCLE_STATUS, "reason": TEXT,
})  # fmt: skip
TICK = row({
    "at": INSTANT, "slos": INT, "new_cycles": INT, "open": INT, "changes": array(CHANGED),
    "unknown": array(row({**DELIVERY, "reason": TEXT})),
    "at_risk": array(row({**DELIVERY, "breach_at": INSTANT})),
    "findings": FINDINGS, "sent": INT, "overdue": INT, "outstanding": array(OUTSTANDING),
    "catalog": nullable(row({
        "written": array(TEXT), "unregistered": array(TEXT),
        "failed": array(row({"table": TEXT, "error": TEXT})), "waiting": BOOL,
    })),
})  # fmt: skip
SCHEDULE = row({
    "contract": TEXT, "object": TEXT, "slo": TEXT, "schedule": TEXT, "timezone": TEXT, "reading": TEXT,
    "cycles": array(row({
        "due_at": INSTANT, "breach_at": INSTANT, "nominal": TEXT, "note": TEXT, "partitions": array(TEXT),
        "excuse": nullable(TEXT),
    })),
    "ended": BOOL, "calendar": array(mapping(nullable(TEXT))), "clock_changes": array(TEXT),
})  # fmt: skip
SUBSCRIPTION = row({
    "contract": TEXT, "major": INT,
    "consumer": row({
        "team": TEXT, "account": nullable(TEXT), "principal": nullable(TEXT), "contact": nullable(TEXT)
    }),
    "purpose": TEXT, "columns": array(TEXT), "tags": array(TEXT), "row_filter": nullable(TEXT), "since": TEXT,
    "until": nullable(TEXT), "approvers": array(TEXT), "state": TEXT, "file": TEXT,
    "approval": nullable(row({
        "approver": nullable(TEXT), "commit": nullable(TEXT), "reasons": array(TEXT),
        "request": nullable(TEXT),
    })),
})  # fmt: skip
_IN_PARTITION = array(row({
    "partition": PARTITION, "value": nullable(NUMBER), "observed": TEXT, "message": TEXT,
}))  # fmt: skip
BACKTEST = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "at": nullable(INSTANT),
    "partitions": array(PARTITION), "present": INT,
    "rules": array(row({
        "check": TEXT, "clause": TEXT, "name": TEXT, "property": nullable(TEXT), "severity": SEVERITY,
        "threshold": TEXT, "at": TEXT, "total": INT, "counts": mapping(INT), "batched_count": INT,
        "first": nullable(PARTITION), "last": nullable(PARTITION), "failed": _IN_PARTITION,
        "untested": _IN_PARTITION, "skipped": _IN_PARTITION,
    })),
    "not_tested": array(row({
        "check": TEXT, "clause": TEXT, "property": nullable(TEXT), "at": TEXT, "reason": TEXT,
    })),
    "unreadable": array(row({"partition": PARTITION, "reason": TEXT})), "error": {"type": "null"},
})  # fmt: skip
AUDIT = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "scope": TEXT, "staged": TEXT, "verdict": TEXT,
    "at": INSTANT, "counts": mapping(INT), "failures": array(row({"clause": TEXT, "message": TEXT})),
})  # fmt: skip

_COVERAGE: dict[str, Schema] = {
    "name": nullable(TEXT), "tables": INT, "covered": INT, "drafts": INT, "share": nullable(NUMBER),
    "bytes": INT,
}  # fmt: skip
COVERAGE = row(_COVERAGE)
SHORTFALL = row({**_COVERAGE, "minimum": NUMBER, "missing": INT})
_PROPOSAL = {"column": nullable(TEXT), "path": TEXT, "key": nullable(TEXT), "value": ANY, "evidence": TEXT}

# fmt: off
_DELIVERY_COUNTS: dict[str, Schema] = {
    "on_time": INT, "late": INT, "missing": INT, "unknown": INT, "excused": INT, "allowed": INT,
}
DELIVERY_BACKTEST = row({
    "contract": TEXT, "object": TEXT, "slo": TEXT, "schedule": TEXT, "timezone": TEXT,
    "grace_minutes": NUMBER, "objective": NUMBER, "attainment": nullable(NUMBER), **_DELIVERY_COUNTS,
    "skipped": INT, "months": array(row({"month": TEXT, **_DELIVERY_COUNTS})),
    "misses": array(row({
        "due_at": INSTANT, "status": enum(*CycleStatus), "delivered_at": nullable(INSTANT), "reason": TEXT,
    })),
    "error": nullable(TEXT),
})
PROPOSED_DELIVERIES = row({
    "contract": TEXT, "object": TEXT, "arrivals": INT, "source": nullable(TEXT), "unreadable": INT,
    "reason": nullable(TEXT),
    "deliveries": array(row({
        "schedule": TEXT, "timezone": TEXT, "grace_minutes": INT, "objective": NUMBER, "cycles": INT,
        "would_be_misses": INT, "missing": INT, "evidence": TEXT, "entry": mapping(ANY),
    })),
    "notes": array(TEXT), "existing": array(TEXT), "added": BOOL,
})
# fmt: on

# Command without arguments -> schema of its output.
DIFFERENCE_KINDS = ("missing", "extra", "changed", "repeated")
OUTPUTS: dict[str, Schema] = {
    "incidents ack": array(
        row({"id": TEXT, "key": TEXT, "acknowledged": BOOL, "by": nullable(TEXT), "state": TEXT,
             "real": nullable(BOOL)})
    ),
    "cycles audit": row({
        "agreeing": INT, "unproven": INT, "wrong": array(row({**DELIVERY, "problem": TEXT}))
    }),
    # DELIVERY_BACKTEST with --deliveries.
    "backtest": array(one_of(
        BACKTEST,
        row({"contract": nullable(TEXT), "object": nullable(TEXT), "error": TEXT}),
        DELIVERY_BACKTEST,
    )),
    # OUTLINE with --dry-run.
    "check": array(one_of(REPORT, UNTESTED, OUTLINE)),
    "diff": row({
        "changes": array(CHANGE), "verdict": TEXT, "compatibility": TEXT, "version_policy": TEXT,
        "required_version": TEXT,
    }),
    "doctor": array(row({"name": TEXT, "ok": nullable(BOOL), "detail": TEXT, "hint": TEXT})),
    "cycles exclude": array(row({**DELIVERY, "undone": BOOL})),
    "explain": one_of(array(CLAUSE), PAGE),
    "incidents list": one_of(
        row({"incidents": array(row(dict(_INCIDENT))), "silences": array(SILENCE)}),
        row({**_INCIDENT, "history": array(STEP)}),
    ),
    "outbox": array(OUTSTANDING),
    "portal build": row({
        "out": TEXT, "products": INT, "rendered": INT, "written": INT, "same": INT, "removed": INT,
        "stale": BOOL, "states": mapping(INT),
        "problems": array(row({"at": TEXT, "rule": TEXT, "message": TEXT, "hint": TEXT})),
        "unjudged": array(TEXT),
    }),
    # PROPOSED_DELIVERIES with --deliveries.
    "propose": array(one_of(
        row({
            "contract": TEXT, "object": TEXT, "rows": INT, "partitions": INT, "present": INT,
            "proposals": array(row(dict(_PROPOSAL))),
            "dropped": array(row({**_PROPOSAL, "reason": TEXT})),
            "empty": array(TEXT), "sensitive": array(TEXT), "unreadable": array(TEXT),
        }),
        PROPOSED_DELIVERIES,
    )),
    "publish": one_of(
        row({"event_id": TEXT, "event": TEXT, "contract": TEXT, "domain": TEXT, "major_version": TEXT,
             "environment": TEXT, "contract_version": TEXT, "object": TEXT, "server": TEXT, "catalog": TEXT,
             "table": TEXT, "partition": PARTITION, "location": TEXT, "cycle": nullable(INSTANT),
             "rows": nullable(INT), "rows_by": mapping(array(row({"value": ANY, "rows": INT}))),
             "revision": INT, "previous_rows": nullable(INT), "at": INSTANT,
             "done": array(TEXT), "repairs": array(TEXT), "waiting": array(TEXT)}),
        row({"sent": INT, "waiting": array(row({
            "target": TEXT, "events": INT, "since": INSTANT, "problem": TEXT}))}),
    ),
    "reconcile": array(one_of(
        row({
            "left": TEXT, "right": TEXT, "agrees": BOOL, "detailed": BOOL, "key": array(TEXT),
            "rows": nullable(row(dict.fromkeys(DIFFERENCE_KINDS, INT))),
            "columns": array(row({
                "name": TEXT, "right_name": TEXT, "left_type": TEXT, "right_type": TEXT, "compared_as": TEXT,
                "tolerance": nullable(TEXT), "differing": INT, "patterns": mapping(INT)})),
            "not_compared": array(row({"name": TEXT, "reason": TEXT})),
            "swapped": array(row({"columns": array(TEXT), "rows": INT})),
            "decided_by": mapping(INT),
            "partitions": array(row({
                "partition": mapping(nullable(TEXT)), "decided_by": TEXT, "left_rows": nullable(INT),
                "right_rows": nullable(INT), "reason": nullable(TEXT),
                **dict.fromkeys(DIFFERENCE_KINDS, INT)})),
            "differences": array(row({
                "kind": enum(*DIFFERENCE_KINDS), "partition": mapping(nullable(TEXT)), "key": mapping(ANY),
                "left_rows": INT, "right_rows": INT, "left": nullable(mapping(ANY)),
                "right": nullable(mapping(ANY))})),
            "written": nullable(TEXT), "notes": array(TEXT), "error": {"type": "null"},
        }),
        row({"error": TEXT}),
    )),
    "erasure find": row({
        "identity": TEXT, "keys": INT, "started": INSTANT, "finished": INSTANT, "rows": INT,
        "tables": mapping(array(TEXT)),
        "bytes_by_means": mapping(row({"files": INT, "bytes": INT, "bytes_read": INT})),
        "hits": array(row({
            "table": TEXT, "path": TEXT, "role": TEXT, "key": INT, "column": TEXT, "rows": INT})),
        "gaps": array(row({"table": TEXT, "subject": TEXT, "reason": TEXT})),
        "written": mapping(TEXT), "findings": array(TEXT),
    }),
    "erasure plan": row({
        "columns": array(row({
            "table": TEXT, "column": TEXT, "files": INT, "bytes": INT, "with_bloom": INT,
            "with_dictionary": INT, "settings": array(TEXT), "reason": TEXT})),
        "gaps": array(row({"table": TEXT, "subject": TEXT, "reason": TEXT})),
        "findings": array(TEXT),
    }),
    "erasure prove": row({
        "format": TEXT, "dq": TEXT, "issued_at": INSTANT,
        "search": row({"started_at": INSTANT, "finished_at": INSTANT}), "before": INSTANT, "identity": TEXT,
        "verdict": enum("proven", "found", "not proven"),
        "keys": row({"salt": TEXT, "digests": array(TEXT)}),
        "tables": array(row({
            "table": TEXT, "columns": array(TEXT), "location": TEXT, "format": TEXT,
            "snapshot": nullable(TEXT), "listing": TEXT,
            "files": array(row({
                "path": TEXT, "size": INT, "checksum": nullable(TEXT), "modified_at": nullable(INSTANT),
                "snapshot": nullable(TEXT), "role": TEXT, "means": TEXT, "bytes_read": INT,
                "hits": array(row({"key": TEXT, "column": TEXT, "rows": INT}))}))})),
        "gaps": array(row({"table": TEXT, "subject": TEXT, "reason": TEXT})), "not_covered": array(TEXT),
        "signature?": row({"algorithm": TEXT, "key": TEXT, "value": TEXT}),
    }),
    "erasure verify": row({
        "valid": BOOL, "verdict": nullable(TEXT), "identity": nullable(TEXT), "before": nullable(INSTANT),
        "issued_at": nullable(INSTANT), "tables": nullable(INT), "files": nullable(INT),
        "problems": array(TEXT), "unchecked": array(TEXT),
    }),
    "register": one_of(
        row({"actions": array(ACTION), "orphans": row({"judged": BOOL, "reasons": array(TEXT)}),
             "findings": FINDINGS, "lake_formation?": GOVERNED, "schedules?": GOVERNED}),
        array(LINE_OF_LOG),
    ),
    "repair": array(row({
        "table": TEXT, "missing": array(TEXT), "dangling": array(TEXT),
        "moved": array(row({"folder": TEXT, "catalog": TEXT})),
        "unrecognized": array(row({"folder": TEXT, "reason": TEXT})), "errors": array(TEXT),
    })),
    "cycles replay": row({
        "cycles": INT, "unproven": INT, "different": INT,
        "shown": array(row({**DELIVERY, "status": CYCLE_STATUS, "delivered_at": nullable(INSTANT),
                           "reason": TEXT,
                           "proven": BOOL, "differences": array(TEXT)})),
    }),
    "cycles show": row({
        **DELIVERY, "breach_at": INSTANT, "decide_at": INSTANT, "status": CYCLE_STATUS, "reason": TEXT,
        "delivered_at": nullable(INSTANT), "complete": nullable(BOOL),
    }),
    "rules": array(row({"rule": TEXT, "severity": nullable(SEVERITY), "summary": TEXT})),
    "sample": array(REPORT),
    "schedule convert": one_of(
        row({"expression": TEXT, "dialect": TEXT, "reading": TEXT, "to": TEXT, "timezone": TEXT,
             "converted": array(row({"text": TEXT, "reading": TEXT})), "differences": array(mapping(ANY)),
             "finding": {"type": "null"}}),
        row({"expression": TEXT, "converted": array(TEXT), "finding": FAULT}),
    ),
    "schedule explain": array(SCHEDULE),
    "schedule next": row({
        "expression": TEXT, "timezone": TEXT, "dialect?": TEXT, "dst?": TEXT, "next_due_utc": array(INSTANT),
        "ended?": BOOL, "finding": nullable(FAULT),
    }),
    "incidents silence": one_of(array(SILENCE), row({"until": INSTANT, "incidents": array(TEXT)})),
    "status": row({
        "groups": array(row({"name": TEXT, "products": INT, "promises": INT, "good": INT, "bad": INT,
                            "attainment": nullable(NUMBER), "exhausted": INT})),
        "deliveries": array(PROMISE),
        "complete_through": array(row({
            "contract": TEXT, "object": TEXT, "state": enum(*DeliveryState),
            **dict.fromkeys(("complete_through", "checked_through", "hole"), nullable(DUE_CYCLES)),
            "reason": TEXT, "since": nullable(INSTANT),
        })),
        "checks": array(row({
            "contract": TEXT, "object": TEXT, "version": TEXT, "scope": TEXT, "check": TEXT, "property": TEXT,
            "clause": TEXT, "name": TEXT, "answered_by": nullable(enum(*AnsweredBy)),
            "status": STATUS, "severity": SEVERITY, "observed": TEXT, "allowed": TEXT,
            "samples": array(mapping(ANY)),
        })),
        "agreements": array(row({
            "contract": TEXT, "object": TEXT, "name": TEXT, "with": TEXT, "cycles": INT, "required": INT,
            "complete": BOOL, "disagreement": nullable(TEXT), "gap": nullable(TEXT),
            "compared_at": nullable(INSTANT),
        })),
        "unusual": array(row({
            "contract": TEXT, "object": TEXT, "alarms": INT, "real": INT, "not_real": INT,
            "unanswered": INT, "precision": nullable(NUMBER),
        })),
        "incidents": array(row({"id": TEXT, "key": TEXT, "severity": SEVERITY, "title": TEXT,
                               "opened_at": INSTANT, "subjects": array(TEXT)})),
        "audits": array(AUDIT),
        "withdrawn": array(row({**CYCLE, "contract": TEXT, "slo": TEXT, "reason": TEXT})),
        "outstanding": array(OUTSTANDING), "findings": FINDINGS, "unwatched": FINDINGS,
    }),
    "store check": row({"faults": array(TEXT)}),
    "store copy": row({"rows": mapping(INT)}),
    "store export": row({"folder": TEXT, "rows": mapping(INT)}),
    "store prune": row({
        "before": INSTANT, "cycles": INT, "receipts": INT, "excuses": INT, "incidents": INT,
        "messages": INT, "silences": INT, "publications": INT, "notices": INT,
    }),
    "store upgrade": row({"before": nullable(TEXT), "after": TEXT}),
    "codeowners": row({"file": TEXT, "changed": BOOL, "findings": FINDINGS, "notes": array(TEXT)}),
    "subscribe": row({
        "file": TEXT, "text": TEXT, "approval_needed": nullable(TEXT), "branch": nullable(TEXT),
        "commit": nullable(TEXT), "pushed": BOOL,
    }),
    "subscriptions": row({"subscriptions": array(SUBSCRIPTION), "findings": FINDINGS}),
    "discover": row({
        "tables": array(row({
            "location": nullable(TEXT), "names": array(TEXT), "format": nullable(TEXT), "files": INT,
            "bytes": INT, "newest": nullable(INSTANT), "rows": nullable(INT), "columns": nullable(INT),
            "partitions": INT, "partition_columns": array(TEXT), "layout": nullable(TEXT),
            "contract": nullable(TEXT), "object": nullable(TEXT), "status": nullable(TEXT),
            "domain": nullable(TEXT), "owner": nullable(TEXT), "drift": array(TEXT), "reads": nullable(INT),
            "readers": nullable(INT), "copy_of": nullable(TEXT), "evidence": nullable(TEXT),
            "outside": array(TEXT), "problem": nullable(TEXT),
        })),
        "total": COVERAGE, "domains": array(COVERAGE), "owners": array(COVERAGE),
        "shortfalls": array(SHORTFALL), "errors": array(TEXT),
        "findings": FINDINGS,
        "branches": array(row({
            "branch": TEXT, "state": enum("opened", "updated", "unchanged", "skipped"),
            "commit": nullable(TEXT), "reason": nullable(TEXT),
            "tables": array(TEXT), "files": array(TEXT),
        })),
    }),
    "tables": array(row({
        "contract": TEXT, "object": TEXT, "state": enum("matching", "mismatching", "listed", "unknown"),
        "path": TEXT, "format": TEXT, "files": INT, "bytes": INT, "newest": nullable(INSTANT),
        "rows": nullable(INT), "nulls": mapping(nullable(INT)), "mismatches": array(TEXT),
        "outside": array(TEXT), "problem": nullable(TEXT), "changed": BOOL,
    })),
    "incidents test": array(row({
        "channel": TEXT, "target": TEXT, "arrived": BOOL, "detail": TEXT, "hint?": TEXT})),
    "watch": one_of(TICK, row({"at": INSTANT, "refused": TEXT})),
}  # fmt: skip


def _contract() -> Schema:
    from dq.contracts.extension import editor_schema

    return editor_schema()


def _extension() -> Schema:
    from dq.contracts.extension import json_schema

    return json_schema()


def _findings() -> Schema:
    from dq.validators.reports.json import findings_schema

    return findings_schema()


def _policy() -> Schema:
    from dq.validators.lint import load_rules
    from dq.validators.policy.file import json_schema

    return json_schema(load_rules())


def _subscription() -> Schema:
    from dq.contracts.subscriptions import json_schema

    return json_schema()


def _output(name: str) -> Schema:
    title = f"Output of dq {name} --format json"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **OUTPUTS[name]}


# Subject -> function that returns its schema; imports are local to each.
SCHEMAS: dict[str, Callable[[], Schema]] = {
    "contract": _contract,
    "extension": _extension,
    "findings": _findings,
    "policy": _policy,
    "subscription": _subscription,
    **{name: partial(_output, name) for name in OUTPUTS},
}


def json_schema(of: str = "extension") -> Schema:
    """Return the JSON Schema (2020-12) of contract, extension, findings, policy, subscription, or an output.

    An output is named by its command, e.g. `status` or `store check`, and is what that prints with
    `--format json`. `dq schema` prints the same.

    Raises UsageError if there is no such schema.
    """
    if of not in SCHEMAS:
        subcommands = [name for name in SCHEMAS if name.startswith(f"{of} ")]
        choice = f"Choose one of {', '.join(subcommands or SCHEMAS)}."
        raise UsageError(
            f"unknown schema {of!r}.", choice if subcommands else suggestion(of, SCHEMAS, choice)
        )
    return SCHEMAS[of]()
