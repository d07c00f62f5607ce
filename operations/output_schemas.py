"""`dq.json_schema`: JSON Schemas of what is written for dq, and of what commands print with --format json."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dq.contracts.outcome import AnsweredBy, CycleStatus, Severity, Status, UsageError, suggestion

# Words to write a JSON Schema with, so that a form reads as a table.

Schema = dict[str, object]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}


def maybe(form: Schema) -> Schema:
    """The form, or null."""
    return {"anyOf": [form, {"type": "null"}]}


def one_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def words(*known: str) -> Schema:
    """One of these texts."""
    return {"enum": list(known)}


def many(form: Schema) -> Schema:
    return {"type": "array", "items": form}


def keyed(form: Schema) -> Schema:
    """An object whose keys are names of others, such as columns."""
    return {"type": "object", "additionalProperties": form}


def row(parts: dict[str, Schema]) -> Schema:
    """An object with these keys; one that ends in a question mark may be absent.

    Further keys may come with a later version.
    """
    return {
        "type": "object",
        "required": [key for key in parts if not key.endswith("?")],
        "properties": {key.removesuffix("?"): form for key, form in parts.items()},
    }


# What each command with `--format json` prints: one row each.

SEVERITY = words(*Severity)
STATUS = words(*Status)
CYCLE_STATUS = words(*CycleStatus)
PARTITION = keyed(ANY)
# Counts from 1; empty texts where a finding is about no contract or the whole file.
FINDING = row({
    "rule": TEXT, "severity": SEVERITY, "message": TEXT, "mend": TEXT, "file": TEXT, "line": WHOLE,
    "column": WHOLE, "path": TEXT, "contract": TEXT,
})  # fmt: skip
FINDINGS = many(FINDING)
FAULT = row({"rule": TEXT, "message": TEXT, "mend": TEXT})
DELIVERY = {"contract": TEXT, "object": TEXT, "slo": TEXT, "due_at": INSTANT}
CLAUSE = row({
    "clause": TEXT, "object": TEXT, "property": maybe(TEXT), "says": TEXT, "state": TEXT, "reason": TEXT,
    "at": TEXT,
})  # fmt: skip
RESULT = row({
    "status": STATUS, "severity": SEVERITY, "check": TEXT,
    "target": row({"object": TEXT, "property": maybe(TEXT)}), "clause": TEXT, "name": TEXT,
    "answered_by": maybe(words(*AnsweredBy)),
    "measure": row({"value": maybe(NUMBER), "observed": TEXT}), "threshold": TEXT, "message": TEXT,
    "at": TEXT, "samples": many(keyed(ANY)), "groups?": many(keyed(ANY)),
})  # fmt: skip
GOVERNED = row({
    "steps": many(row({
        "kind": TEXT, "what": TEXT, "ending": maybe(words("done", "failed")), "error": maybe(TEXT),
    })),
    "notes": many(TEXT), "error": maybe(TEXT),
})  # fmt: skip
REPORT = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "partitions": many(PARTITION), "at": maybe(INSTANT),
    "rules": many(TEXT), "rows": maybe(WHOLE), "passes": WHOLE, "proven": WHOLE, "kept": WHOLE,
    "counts": keyed(WHOLE), "results": many(RESULT),
    "clauses": many(CLAUSE), "quarantine": maybe(keyed(ANY)), "notes": many(TEXT),
    "verification": maybe(keyed(ANY)), "error?": {"type": "null"},
})  # fmt: skip
UNTESTED = row({
    "contract": maybe(TEXT), "version": maybe(TEXT), "object": maybe(TEXT), "partitions": many(PARTITION),
    "results": {"type": "array", "maxItems": 0}, "error": TEXT,
})  # fmt: skip
OUTLINE = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "partitions": many(PARTITION), "rules": many(TEXT),
    "passes": many(row({
        "rows": TEXT, "kind": TEXT, "says": TEXT, "questions": WHOLE, "clauses": many(TEXT)
    })),
    "errors": many(row({"clause": TEXT, "reason": TEXT})), "untested": many(CLAUSE),
    "error?": {"type": "null"},
})  # fmt: skip
OUTSTANDING = row({
    "channel": TEXT, "target": TEXT, "messages": WHOLE, "since": INSTANT, "reason": TEXT, "refused": YES_NO,
})  # fmt: skip
SILENCE = row({"pattern": TEXT, "reason": TEXT, "by": TEXT, "at": INSTANT, "until": INSTANT})
_INCIDENT = {
    "id": TEXT, "contract": TEXT, "object": TEXT, "group": TEXT, "state": TEXT, "severity": SEVERITY,
    "title": TEXT, "opened_at": INSTANT, "resolved_at": maybe(INSTANT), "acked_at": maybe(INSTANT),
    "acked_by": maybe(TEXT), "silenced_until": maybe(INSTANT), "silenced_why": maybe(TEXT),
    "root": maybe(TEXT), "holds_up": many(TEXT), "flapping_since": maybe(INSTANT), "breaches": WHOLE,
    "open": many(TEXT),
}  # fmt: skip
STEP = row({"at": INSTANT, "kind": TEXT, "revision": WHOLE, "subject": TEXT, "detail": TEXT})
CYCLE = {
    "due_at": INSTANT, "breach_at": INSTANT, "status": CYCLE_STATUS, "delivered_at": maybe(INSTANT),
    "source": maybe(TEXT), "first_seen_at": maybe(INSTANT), "arriving_since": maybe(INSTANT),
    "gone_since": maybe(INSTANT), "delivered_anew_at": maybe(INSTANT),
    "evidence": many(row({"source": TEXT, "delivered_at": INSTANT, "rows": maybe(WHOLE)})),
    "disagreeing": many(TEXT),
}  # fmt: skip
PROMISE = row({
    "contract": TEXT, "object": TEXT, "slo": TEXT, "objective": NUMBER, "attainment": maybe(NUMBER),
    "good": WHOLE, "bad": WHOLE, "allowed": WHOLE, "budget": TEXT,
    "streak": maybe(row({"length": WHOLE, "good": YES_NO})), "trend": maybe(NUMBER),
    "usual_minutes": maybe(NUMBER), "present": maybe(NUMBER), "burning": many(TEXT),
    "cycles": many(row(CYCLE)),
})  # fmt: skip
LINE_OF_LOG = row({
    "at": TEXT, "run": TEXT, "registry": TEXT, "catalog": TEXT, "table": TEXT, "kind": TEXT, "grade": TEXT,
    "ending": TEXT, "before": TEXT, "after": TEXT, "error": TEXT,
})  # fmt: skip
ACTION = row({
    "table": TEXT, "kind": TEXT, "grade": TEXT, "note": TEXT, "ending": maybe(TEXT), "error": maybe(TEXT),
    "changes": many(row({
        "field": TEXT, "name": TEXT, "before": ANY, "after": ANY, "grade": TEXT, "rule": TEXT,
        "drift": YES_NO,
    })),
})  # fmt: skip
CHANGE = row({
    "rule": TEXT, "contract": TEXT, "path": TEXT, "attribute": TEXT, "before": ANY, "after": ANY,
    "effect": TEXT, "severity": SEVERITY, "mode": TEXT, "verdict": TEXT, "part": TEXT, "who": many(TEXT),
    "consumers": many(keyed(ANY)), "bump": TEXT, "message": TEXT, "instead": TEXT, "required_version": TEXT,
    "against": TEXT, "waived": TEXT, "at": TEXT, "at_before": TEXT, "fingerprint": TEXT,
})  # fmt: skip
PAGE = row({
    "id": TEXT, "kind": words("rule", "change", "custom check"), "severity": maybe(SEVERITY),
    "summary": TEXT, "why": TEXT, "bad": TEXT, "good": TEXT, "mend": TEXT,
    "arguments": many(row({"name": TEXT, "description": TEXT, "default": ANY})),
})  # fmt: skip
CHANGED = row({
    **DELIVERY, "partitions": many(TEXT), "before": CYCLE_STATUS, "after": CYCLE_STATUS, "reason": TEXT,
})  # fmt: skip
TICK = row({
    "at": INSTANT, "slos": WHOLE, "new_cycles": WHOLE, "open": WHOLE, "changes": many(CHANGED),
    "unknown": many(row({**DELIVERY, "reason": TEXT})), "findings": FINDINGS, "sent": WHOLE, "waiting": WHOLE,
    "outstanding": many(OUTSTANDING),
})  # fmt: skip
COMING = row({
    "contract": TEXT, "object": TEXT, "slo": TEXT, "schedule": TEXT, "timezone": TEXT, "reading": TEXT,
    "cycles": many(row({
        "due_at": INSTANT, "breach_at": INSTANT, "nominal": TEXT, "note": TEXT, "partitions": many(TEXT),
        "excuse": maybe(TEXT),
    })),
    "ended": YES_NO, "calendar": many(keyed(maybe(TEXT))), "clock_changes": many(TEXT),
})  # fmt: skip
LISTED = row({
    "contract": TEXT, "major": WHOLE,
    "consumer": row({
        "team": TEXT, "account": maybe(TEXT), "principal": maybe(TEXT), "contact": maybe(TEXT)
    }),
    "purpose": TEXT, "columns": many(TEXT), "tags": many(TEXT), "row_filter": maybe(TEXT), "since": TEXT,
    "until": maybe(TEXT), "approvers": many(TEXT), "state": TEXT, "file": TEXT,
})  # fmt: skip
_IN_PARTITION = many(row({
    "partition": PARTITION, "value": maybe(NUMBER), "observed": TEXT, "message": TEXT,
}))  # fmt: skip
BACKTEST = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "at": maybe(INSTANT), "partitions": many(PARTITION),
    "present": WHOLE,
    "rules": many(row({
        "check": TEXT, "clause": TEXT, "name": TEXT, "property": maybe(TEXT), "severity": SEVERITY,
        "threshold": TEXT, "at": TEXT, "total": WHOLE, "counts": keyed(WHOLE), "together": WHOLE,
        "first": maybe(PARTITION), "last": maybe(PARTITION), "failed": _IN_PARTITION, "untold": _IN_PARTITION,
        "skipped": _IN_PARTITION,
    })),
    "not_tested": many(row({
        "check": TEXT, "clause": TEXT, "property": maybe(TEXT), "at": TEXT, "reason": TEXT,
    })),
    "unread": many(row({"partition": PARTITION, "reason": TEXT})), "error": {"type": "null"},
})  # fmt: skip
AUDIT = row({
    "contract": TEXT, "version": TEXT, "object": TEXT, "scope": TEXT, "staged": TEXT, "verdict": TEXT,
    "at": INSTANT, "counts": keyed(WHOLE), "broken": many(row({"what": TEXT, "message": TEXT})),
})  # fmt: skip

_PROPOSAL = {"column": maybe(TEXT), "path": TEXT, "key": maybe(TEXT), "value": ANY, "evidence": TEXT}

# The command line without its arguments -> the form.
OUTPUTS: dict[str, Schema] = {
    "incidents ack": many(
        row({"id": TEXT, "key": TEXT, "acknowledged": YES_NO, "by": maybe(TEXT), "state": TEXT})
    ),
    "cycles audit": row({
        "agreeing": WHOLE, "unproven": WHOLE, "wrong": many(row({**DELIVERY, "what": TEXT}))
    }),
    "backtest": many(one_of(
        BACKTEST, row({"contract": maybe(TEXT), "object": maybe(TEXT), "error": TEXT})
    )),
    # Of a dry run, the outlines.
    "check": many(one_of(REPORT, UNTESTED, OUTLINE)),
    "diff": row({
        "changes": many(CHANGE), "verdict": TEXT, "compatibility": TEXT, "version_policy": TEXT,
        "required_version": TEXT,
    }),
    "doctor": many(row({"what": TEXT, "ok": maybe(YES_NO), "seen": TEXT, "mend": TEXT})),
    "cycles exclude": many(row({**DELIVERY, "undone": YES_NO})),
    "explain": one_of(many(CLAUSE), PAGE),
    "incidents list": one_of(
        row({"incidents": many(row(dict(_INCIDENT))), "silences": many(SILENCE)}),
        row({**_INCIDENT, "history": many(STEP)}),
    ),
    "outbox": many(OUTSTANDING),
    "portal build": row({
        "out": TEXT, "products": WHOLE, "rendered": WHOLE, "written": WHOLE, "same": WHOLE, "removed": WHOLE,
        "stale": YES_NO, "states": keyed(WHOLE),
        "problems": many(row({"at": TEXT, "rule": TEXT, "message": TEXT, "mend": TEXT})),
        "unjudged": many(TEXT),
    }),
    "propose": many(row({
        "contract": TEXT, "object": TEXT, "rows": WHOLE, "partitions": WHOLE, "present": WHOLE,
        "proposals": many(row(dict(_PROPOSAL))),
        "dropped": many(row({**_PROPOSAL, "reason": TEXT})),
        "empty": many(TEXT), "sensitive": many(TEXT), "unreadable": many(TEXT),
    })),
    "publish": one_of(
        row({"event_id": TEXT, "event": TEXT, "contract": TEXT, "domain": TEXT, "major_version": TEXT,
             "environment": TEXT, "contract_version": TEXT, "object": TEXT, "server": TEXT, "catalog": TEXT,
             "table": TEXT, "partition": PARTITION, "location": TEXT, "cycle": maybe(INSTANT),
             "rows": maybe(WHOLE), "revision": WHOLE, "previous_rows": maybe(WHOLE), "at": INSTANT,
             "done": many(TEXT), "mended": many(TEXT), "waiting": many(TEXT)}),
        row({"sent": WHOLE, "waiting": many(row({
            "target": TEXT, "events": WHOLE, "since": INSTANT, "problem": TEXT}))}),
    ),
    "register": one_of(
        row({"actions": many(ACTION), "orphans": row({"judged": YES_NO, "reasons": many(TEXT)}),
             "findings": FINDINGS, "lake_formation?": GOVERNED, "schedules?": GOVERNED}),
        many(LINE_OF_LOG),
    ),
    "repair": many(row({
        "table": TEXT, "missing": many(TEXT), "gone": many(TEXT),
        "moved": many(row({"folder": TEXT, "catalog": TEXT})),
        "strange": many(row({"folder": TEXT, "reason": TEXT})), "errors": many(TEXT),
    })),
    "cycles replay": row({
        "cycles": WHOLE, "unproven": WHOLE, "different": WHOLE,
        "shown": many(row({**DELIVERY, "status": CYCLE_STATUS, "delivered_at": maybe(INSTANT), "reason": TEXT,
                           "proven": YES_NO, "differences": many(TEXT)})),
    }),
    "rules": many(row({"rule": TEXT, "severity": maybe(SEVERITY), "summary": TEXT})),
    "sample": many(REPORT),
    "schedule convert": one_of(
        row({"expression": TEXT, "dialect": TEXT, "reading": TEXT, "to": TEXT, "timezone": TEXT,
             "converted": many(row({"text": TEXT, "reading": TEXT})), "differences": many(keyed(ANY)),
             "finding": {"type": "null"}}),
        row({"expression": TEXT, "converted": many(TEXT), "finding": FAULT}),
    ),
    "schedule explain": many(COMING),
    "schedule next": row({
        "expression": TEXT, "timezone": TEXT, "dialect?": TEXT, "dst?": TEXT, "next_due_utc": many(INSTANT),
        "ended?": YES_NO, "finding": maybe(FAULT),
    }),
    "incidents silence": one_of(many(SILENCE), row({"until": INSTANT, "incidents": many(TEXT)})),
    "status": row({
        "groups": many(row({"name": TEXT, "products": WHOLE, "promises": WHOLE, "good": WHOLE, "bad": WHOLE,
                            "attainment": maybe(NUMBER), "exhausted": WHOLE})),
        "deliveries": many(PROMISE),
        "checks": many(row({
            "contract": TEXT, "object": TEXT, "version": TEXT, "scope": TEXT, "check": TEXT, "property": TEXT,
            "clause": TEXT, "name": TEXT, "answered_by": maybe(words(*AnsweredBy)),
            "status": STATUS, "severity": SEVERITY, "observed": TEXT, "allowed": TEXT,
            "samples": many(keyed(ANY)),
        })),
        "incidents": many(row({"id": TEXT, "key": TEXT, "severity": SEVERITY, "title": TEXT,
                               "opened_at": INSTANT, "subjects": many(TEXT)})),
        "audits": many(AUDIT),
        "withdrawn": many(row({**CYCLE, "contract": TEXT, "slo": TEXT, "reason": TEXT})),
        "outstanding": many(OUTSTANDING), "findings": FINDINGS,
    }),
    "store check": row({"faults": many(TEXT)}),
    "store export": row({"folder": TEXT, "rows": keyed(WHOLE)}),
    "store prune": row({
        "before": INSTANT, "cycles": WHOLE, "receipts": WHOLE, "excuses": WHOLE, "incidents": WHOLE,
        "messages": WHOLE, "silences": WHOLE, "publications": WHOLE, "notices": WHOLE,
    }),
    "store upgrade": row({"before": maybe(TEXT), "after": TEXT}),
    "subscriptions": row({"subscriptions": many(LISTED), "findings": FINDINGS}),
    "tables": many(row({
        "contract": TEXT, "object": TEXT, "state": words("kept", "broken", "listed", "unknown"),
        "path": TEXT, "format": TEXT, "files": WHOLE, "bytes": WHOLE, "newest": maybe(INSTANT),
        "rows": maybe(WHOLE), "nulls": keyed(maybe(WHOLE)), "broken": many(TEXT), "problem": maybe(TEXT),
        "changed": YES_NO,
    })),
    "incidents test": many(row({
        "channel": TEXT, "target": TEXT, "arrived": YES_NO, "said": TEXT, "mend?": TEXT})),
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
    from dq.validators.lint import rules_of
    from dq.validators.policy.file import json_schema

    return json_schema(rules_of())


def _subscription() -> Schema:
    from dq.contracts.subscriptions import json_schema

    return json_schema()


def _output(name: str) -> Schema:
    title = f"What dq {name} --format json prints"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **OUTPUTS[name]}


# What the schema is of -> what gives it, importing nothing that the others need.
SCHEMAS: dict[str, Callable[[], Schema]] = {
    "contract": _contract,
    "extension": _extension,
    "findings": _findings,
    "policy": _policy,
    "subscription": _subscription,
    **{name: partial(_output, name) for name in OUTPUTS},
}


def json_schema(of: str = "extension") -> Schema:
    """The JSON Schema (2020-12) of contract, extension, findings, policy or subscription, or of an output.

    An output is named by its command, e.g. `status` or `store check`: what that prints with `--format json`.
    `dq schema` prints the same.

    Raises UsageError for what has no schema.
    """
    if of not in SCHEMAS:
        below = [name for name in SCHEMAS if name.startswith(f"{of} ")]
        choice = f"Choose one of {', '.join(below or SCHEMAS)}."
        raise UsageError(
            f"there is no schema of {of!r}.", choice if below else suggestion(of, SCHEMAS, choice)
        )
    return SCHEMAS[of]()
