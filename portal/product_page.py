"""Values of a product's page, its `status.json` and its badge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from dq.alerts.incident import Incident, incident_as_row
from dq.contracts import extension
from dq.contracts.access.data_location import with_defaults
from dq.contracts.check_result import Status
from dq.contracts.escaping import is_plain_name, python
from dq.contracts.metrics import UnusualRule, is_unusual_rule, read_unusual_rule
from dq.contracts.model import Contract, Quality, SchemaObject, Server, identity
from dq.contracts.outcome import iso, pluralize
from dq.contracts.slo import Slo
from dq.contracts.subscriptions import empty_subscription, file_name
from dq.dataquality.delivery.budget import Budget
from dq.dataquality.delivery.compliance import SloCompliance, percent, promise_as_dict
from dq.dataquality.delivery.cycle import CycleRecord
from dq.dataquality.delivery.notify import format_duration, local_time
from dq.dataquality.results import BROKEN, AgreementStanding, StoredResult
from dq.portal import formatting
from dq.portal.charts import Node, Svg, graph
from dq.portal.columns import ColumnPanels, column_panels
from dq.portal.contracts import NO_LINEAGE, Lineage, LineageNode, VersionChange, VersionImpact, domain_page
from dq.portal.misses import PageLookup, misses
from dq.portal.product import (
    ClauseEvaluation,
    ClauseStatus,
    ConsumerFacts,
    ObjectFacts,
    ProductFacts,
    ProductState,
    may_use_now,
)
from dq.portal.store_queries import PlacedElsewhere
from dq.registry.table import fold_location

# The section of one object: schema, clauses, row counts.

_MAX_CLAUSES, _MAX_FAILURES, _MAX_OPEN = 60, 50, 15
# In the order of the page.
_TITLES = {
    ClauseStatus.BROKEN: "failed",
    ClauseStatus.UNANSWERED: "not evaluated",
    ClauseStatus.UNCHECKED: "not evaluated",
    ClauseStatus.PROVEN: "passed, from column statistics",
    ClauseStatus.SCANNED: "passed, by scan",
    ClauseStatus.CACHED: "passed, by scan of new files",
    ClauseStatus.SCHEMA: "passed, from the schema",
    ClauseStatus.PASSED: "passed, method not recorded",
    ClauseStatus.WATCHED: "monitored with the deliveries",
    ClauseStatus.DOCUMENTED: "not enforced",
}


def object_values(
    facts: ObjectFacts, incidents: Sequence[Incident], panels: ColumnPanels
) -> formatting.Values:
    schema_object, quality = facts.object, facts.quality
    groups = _clauses(facts)
    failed = next((group for group in groups if group["title"].endswith(_TITLES[ClauseStatus.BROKEN])), None)
    return {
        "name": schema_object.name,
        "said": formatting.cut(schema_object.description),
        "grain": formatting.cut(schema_object.data_granularity_description, 300),
        "columns": panels.panels,
        "left_out": panels.left_out,
        "changed": panels.changed,
        "keys": [prop.column for prop in schema_object.primary_key()],
        "partitions": [prop.column for prop in schema_object.partition_keys()],
        "failed": failed,
        "groups": [group for group in groups if group is not failed],
        "unstable": _unstable(facts),
        "clauses": len(facts.clauses),
        "agreements": [_agreement(standing, incidents) for standing in facts.agreements],
        "alarms": str(quality.alarms) if quality.alarms.total else "",
        "rows": formatting.row_count_chart(quality.rows, _promised_rows(schema_object))
        if quality.rows
        else None,
        "counts_rows": any(_counts_rows(schema_object, rule) for rule in schema_object.quality),
        "checked": formatting.instant(quality.checked_at) if quality.checked_at else None,
        "scope": quality.newest[0].scope if quality.newest else "",
        "failed_before": [
            _failed(line)
            for line in quality.lines
            if line.status in (Status.FAIL, Status.ERROR) and not _is_listed(line, facts)
        ][:_MAX_FAILURES],
    }


def _counts_rows(schema_object: SchemaObject, rule: Quality) -> bool:
    if is_unusual_rule(rule):
        terms = read_unusual_rule(schema_object, None, rule)
        return isinstance(terms, UnusualRule) and "rowCount" in terms.numbers
    return "rowCount" in (rule.metric, rule.rule)


def _promised_rows(schema_object: SchemaObject) -> formatting.RowRange | None:
    """Return the number of rows that rules of the object promise, or None without such a rule."""
    low: list[float] = []
    high: list[float] = []
    for rule in schema_object.quality:
        if not _counts_rows(schema_object, rule) or rule.unit not in (None, "rows"):
            continue
        for operator, bound in rule.operators():
            numbers = bound if isinstance(bound, list) else [bound]
            if not numbers or not all(type(number) in (int, float) for number in numbers):
                continue
            if operator in ("mustBe", "mustBeBetween", "mustBeGreaterThan", "mustBeGreaterOrEqualTo"):
                low.append(min(numbers) + (operator == "mustBeGreaterThan"))
            if operator in ("mustBe", "mustBeBetween", "mustBeLessThan", "mustBeLessOrEqualTo"):
                high.append(max(numbers) - (operator == "mustBeLessThan"))
    if not low and not high:
        return None
    return max(low, default=None), min(high, default=None)


def _agreement(standing: AgreementStanding, incidents: Sequence[Incident]) -> formatting.Values:
    """Return the values of a rule for cycles in a row, with its open incident."""
    streak = standing.streak
    kind, text = ("fine", "ready") if streak.is_complete else ("unchecked", "not yet")
    if streak.disagreement:
        kind, text = "broken", f"{streak.disagreement} disagrees"
    elif streak.gap and not streak.is_complete:
        kind, text = "unknown", f"{streak.gap} was not compared"
    open_ids = (incident.id for incident in incidents if standing.subject in incident.open_subjects)
    return {
        "other": formatting.cut(standing.other, 200),
        "streak": str(streak),
        "kind": kind,
        "status": formatting.cut(text, 200),
        "compared": formatting.instant(standing.compared_at) if standing.compared_at else None,
        "incident": next(open_ids, None),
    }


def _is_listed(line: StoredResult, facts: ObjectFacts) -> bool:
    """Return True if a failed check is one of the failed clauses, which are those of the newest scope."""
    return line in facts.quality.newest and any(
        clause.account.path == line.clause and clause.status in (ClauseStatus.BROKEN, ClauseStatus.UNANSWERED)
        for clause in facts.clauses
    )


def _failed(line: StoredResult) -> formatting.Values:
    return {
        "scope": line.scope,
        "what": f"{line.property} {line.check}".strip(),
        "status": "fails" if line.status is Status.FAIL else "unknown",
        "kind": "broken" if line.status is Status.FAIL else "unknown",
        "observed": formatting.cut(line.observed, 300),
        "allowed": formatting.cut(line.allowed, 300),
        "severity": line.severity,
    }


def _clauses(facts: ObjectFacts) -> list[formatting.Values]:
    """Return the clauses grouped by status in the scope that was checked last."""
    by_title: dict[str, list[tuple[str, ...]]] = {title: [] for title in _TITLES.values()}
    for clause in facts.clauses:
        account = clause.account
        past = facts.past.get(account.path, ())
        newest = next((result for result in reversed(past) if result is not None), None)
        row = (
            account.property or account.object,
            formatting.cut(account.clause, 200),
            formatting.rule_sparkline(past) if newest else "",
            formatting.cut(newest.observed, 120) if newest else "",
            _expectation(clause, newest.allowed if newest else ""),
        )
        by_title[_TITLES[clause.status]].append(row)
    groups, shown = [], 0
    for title, clause_rows in by_title.items():
        if clause_rows:
            # Failed ones, and as many others as fit the screen if they have results.
            shown += len(clause_rows)
            has_results = any(row[2] for row in clause_rows)
            groups.append(
                {
                    "open": title == _TITLES[ClauseStatus.BROKEN] or (has_results and shown <= _MAX_OPEN),
                    "title": f"{pluralize(len(clause_rows), 'clause')} {title}",
                    "rows": clause_rows[:_MAX_CLAUSES],
                    "left_out": max(len(clause_rows) - _MAX_CLAUSES, 0),
                }
            )
    return groups


def _expectation(clause: ClauseEvaluation, allowed: str) -> str:
    """Return what a failed clause expects, and how any other is evaluated."""
    if clause.status is ClauseStatus.BROKEN and allowed:
        return formatting.cut(allowed, 200)
    return formatting.cut(clause.explanation, 300)


def _unstable(facts: ObjectFacts) -> list[tuple[str, ...]]:
    """Return the clauses that failed or had no result in one of their last checks, most failures first.

    Without those that fail now, which are listed above.
    """
    rows: list[tuple[int, tuple[str, ...]]] = []
    for clause in facts.clauses:
        if clause.status is ClauseStatus.BROKEN:
            continue
        past = facts.past.get(clause.account.path, ())
        failures = sum(result is not None and result.status in BROKEN for result in past)
        newest = next((result for result in reversed(past) if result is not None), None)
        if failures and newest:
            account = clause.account
            row: tuple[str, ...] = (
                account.property or account.object,
                formatting.cut(account.clause, 200),
                formatting.rule_sparkline(past),
                f"{failures} of {sum(result is not None for result in past)}",
                formatting.cut(newest.observed, 120),
            )
            rows.append((-failures, row))
    return [row for _, row in sorted(rows, key=lambda entry: entry[0])][:_MAX_FAILURES]


# A change of a contract, as a row of a product's versions or of the changes page.

_MAX_VERSIONS = 10
_IMPACT_LABELS = {
    VersionImpact.BREAK: formatting.StatusLabel("broken", "breaking change"),
    VersionImpact.WARN: formatting.StatusLabel("late", "may break readers"),
    VersionImpact.NOTHING: formatting.StatusLabel("fine", "compatible"),
    VersionImpact.FIRST: formatting.StatusLabel("resting", "first version"),
    VersionImpact.UNKNOWN: formatting.StatusLabel("unknown", "compatibility unknown"),
}


def change_values(change: VersionChange) -> formatting.Values:
    """Return the values of one change: versions, impact and time."""
    return {
        "title": version_title(change.before, change.after),
        "state": _IMPACT_LABELS[change.broke],
        "at": formatting.instant_from_iso(change.at),
        "loose": not change.at,
        "changes": [(rule, formatting.cut(text, 300)) for rule, text in change.changes],
        "omitted": change.omitted,
        "unannounced": change.unannounced,
        "reason": change.reason,
        "major": is_major(change.before, change.after),
    }


def version_title(before: str, after: str) -> str:
    """Return both versions, as far as they are known."""
    if before and before == after:
        return f"within {formatting.cut(after, 60)}"
    return (
        " → ".join(formatting.cut(version, 60) for version in (before, after) if version)
        or "unreadable version"
    )


def is_major(before: str, after: str) -> bool:
    """Return True if the major version changed."""
    return bool(before and after) and identity("", before) != identity("", after)


def is_cosmetic(change: VersionChange) -> bool:
    """Return True if only the file changed: comments, order of keys."""
    return change.silent and change.before == change.after


def versions(facts: ProductFacts) -> formatting.Values:
    """Return the versions of a product, newest first, with impact and time of the first check.

    Versions that are not in Git are listed if checks have recorded them.
    """
    checked = _first_checks(facts)
    changes = [change for change in facts.versions.changes if not is_cosmetic(change)]
    rows, now = [], facts.contract.version
    for change in changes[:_MAX_VERSIONS]:
        first = checked.pop(change.after, None) if change.after != change.before else None
        rows.append(
            {
                **change_values(change),
                "checked": formatting.instant(first) if first else None,
                "now": change.after == now,
            }
        )
        now = "" if change.after == now else now
    if len(changes) > _MAX_VERSIONS:
        for change in changes[_MAX_VERSIONS:]:
            checked.pop(change.after, None)
            now = "" if change.after == now else now
    rows = [*_unchanged_versions(checked, now), *rows]
    return {
        "rows": rows,
        "older": facts.versions.older or len(changes) > _MAX_VERSIONS,
        "unknown": facts.versions.unknown,
        "status": "in force" if facts.in_force else facts.contract.status,
    }


def _first_checks(facts: ProductFacts) -> dict[str, datetime]:
    """Return the time of the first check of each version in the stored results."""
    first_checked: dict[str, datetime] = {}
    for object_facts in facts.objects:
        for line in object_facts.quality.lines:
            first_checked[line.version] = min(line.at, first_checked.get(line.version, line.at))
    return first_checked


def _unchanged_versions(checked: dict[str, datetime], now: str) -> Iterator[formatting.Values]:
    """Yield versions without a recorded change: that of the file, and those that were checked."""
    names = dict.fromkeys(
        ([now] if now else []) + sorted(checked, key=lambda name: checked[name], reverse=True)
    )
    for name in names:
        checked_at = checked.get(name)
        values = change_values(VersionChange("", name, VersionImpact.UNKNOWN))
        yield {
            **values,
            "loose": False,
            "checked": formatting.instant(checked_at) if checked_at else None,
            "now": name == now,
        }


# The page of one product: promises, compliance, how to read it, contacts.

PAST_INCIDENTS = 20
_MAX_EDGES = 100
_MAX_LINE_CHARS = 500


def product_page(
    facts: ProductFacts, page_of: PageLookup, registry_url: str = "", lineage: Lineage = NO_LINEAGE
) -> formatting.Values:
    """Return the values of a product's page; with `registry_url`, also of a new subscription there."""
    contract = facts.contract
    description = contract.description
    return {
        "title": formatting.cut(facts.card.title, 200),
        "key": facts.card.key,
        "version": contract.version,
        "contract_status": contract.status,
        "state": formatting.STATES[facts.state],
        "answer": may_use_now(facts),
        "as_of": formatting.instant(facts.now),
        "file": contract.file,
        "domain": (contract.domain, domain_page(contract.domain)) if contract.domain else None,
        "data_product": contract.data_product if contract.data_product != facts.card.key else None,
        "owners": list(_owners(contract)),
        "support": [
            {
                "tool": channel.tool,
                "channel": formatting.cut(channel.channel, 200),
                "link": formatting.link(channel.url),
                "said": formatting.cut(channel.description, 300),
            }
            for channel in contract.support
        ],
        "about": [
            (name, formatting.cut(text))
            for name, text in (
                ("Purpose", description.purpose if description else None),
                ("Usage", description.usage if description else None),
                ("Limitations", description.limitations if description else None),
            )
            if text
        ],
        "links": [
            {
                "type": formatting.cut(definition.type, 80),
                "url": formatting.cut(definition.url, 500),
                "link": formatting.link(definition.url),
            }
            for definition in contract.authoritative_definitions
        ],
        "tags": contract.tags[:30],
        "misses": misses(facts, page_of),
        "in_force": facts.in_force,
        "promises": [_promise(promise, facts) for promise in facts.promises],
        "wrong": facts.wrong,
        "other_levels": list(_levels(contract, facts)),
        "objects": list(_objects(facts)),
        "reading": [_how_to_read(facts, server) for server in contract.servers],
        "consumers": [_consumer(consumer) for consumer in facts.consumers],
        "subscribe": subscribe_values(contract, registry_url) if registry_url else None,
        "lineage": _lineage_graph(lineage),
        "made_from": [_edge(edge, page_of) for edge in facts.made_from[:_MAX_EDGES]],
        "used_by": [_edge(edge, page_of) for edge in facts.used_by[:_MAX_EDGES]],
        "versions": versions(facts),
        "timeline": formatting.incident_timeline(
            [incident_facts.incident for incident_facts in facts.incidents], facts.now
        ),
        "open_incidents": [incident_row(incident_facts) for incident_facts in facts.open_incidents],
        "past_incidents": [
            incident_row(each_incident)
            for each_incident in facts.incidents
            if each_incident.incident.state.is_closed
        ][:PAST_INCIDENTS],
    }  # fmt: skip


def _objects(facts: ProductFacts) -> Iterator[formatting.Values]:
    incidents = [open_facts.incident for open_facts in facts.open_incidents]
    # Columns are numbered over all objects of the page.
    first = 0
    for object_facts in facts.objects:
        panels = column_panels(object_facts, facts.versions.changes, first)
        first += len(panels.panels) + panels.left_out
        yield object_values(object_facts, incidents, panels)


def incident_row(facts: Any) -> formatting.Values:
    """Return the values of an incident in a list."""
    incident = facts.incident
    return {
        "id": incident.id,
        "title": formatting.cut(incident.title, 300),
        "severity": incident.severity.value,
        "state": formatting.incident_state_label(incident.state),
        "closed": incident.state.is_closed,
        "opened": formatting.instant(incident.opened_at),
        "resolved": formatting.instant(incident.resolved_at) if incident.resolved_at else None,
        "by": incident.acked_by,
        "contract": "" if facts.about_the_platform else incident.key.contract,
    }


def _owners(contract: Contract) -> Iterator[formatting.Values]:
    name = getattr(contract.team, "name", None)
    if name:
        yield {"name": formatting.cut(name, 200), "role": "team", "link": None}
    for member in contract.members():
        if member.date_out is None:
            mail = f"mailto:{member.username}" if "@" in member.username else None
            yield {
                "name": formatting.cut(member.name or member.username, 200),
                "role": formatting.cut(member.role, 80),
                "link": formatting.link(mail),
            }


def _promise(promise: SloCompliance, facts: ProductFacts) -> formatting.Values:
    slo, budget = promise.slo, promise.budget
    following = next(iter(slo.schedule.after(facts.now)), None)
    last = next((record for record in reversed(promise.cycles) if record.delivered_at is not None), None)
    figures = [
        (
            "On time",
            percent(budget.attainment),
            f"objective {slo.delivery.objective} over {format_duration(slo.window)}",
        ),
        (*_budget_figure(budget), budget.as_text()),
    ]
    if promise.usual_delay is not None:
        early = promise.usual_delay.total_seconds() < 0
        figures.append(
            (
                "Usual arrival",
                f"{format_duration(promise.usual_delay)} {'before' if early else 'after'}",
                "due time",
            )
        )
    if promise.availability is not None:
        figures.append(
            ("Fresh", percent(promise.availability), "of the time, the newest due delivery was available")
        )
    if promise.warnings is not None and (counts := promise.warnings.counts.as_text()):
        warned = promise.warnings.counts.true + promise.warnings.counts.false
        figures.append(("Early warnings", f"{promise.warnings.counts.true} of {warned} right", counts))
    at_risk = promise.warnings.at_risk_since if promise.warnings is not None else None
    return {
        "at_risk": local_time(slo, at_risk) if at_risk is not None else None,
        "id": slo.id,
        "object": slo.object.name,
        "words": _promise_text(slo),
        "history": formatting.delivery_history(slo, promise.cycles),
        "figures": figures,
        "next": local_time(slo, following.at) if following else None,
        "returns": formatting.instant(budget.next_returns_at) if budget.next_returns_at else None,
        "last": (local_time(slo, last.delivered_at), last.source) if last and last.delivered_at else None,
        "spent": _budget_label(budget),
        "burning": list(budget.burning),
    }


def _budget_figure(budget: Budget) -> tuple[str, str]:
    """Return the name and value of a budget's figure: misses if they are not a part of allowed ones."""
    if budget.attainment is None:
        return "Error budget used", "-"
    if budget.is_exhausted or not budget.allowed:
        return "Misses", str(budget.bad)
    return "Error budget used", f"{budget.bad} of {budget.allowed}"


def _budget_label(budget: Budget) -> tuple[str, str] | None:
    """Return the style class and label of a budget, or None if it needs no label."""
    if budget.is_exhausted:
        return "broken", "budget exhausted"
    if budget.bad and budget.bad == budget.allowed:
        return "late", "error budget used up"
    return ("late", "50% of error budget used") if budget.is_half_used else None


def _promise_text(slo: Slo) -> str:
    grace = f", grace {format_duration(slo.grace)}" if slo.grace else ""
    brings = ", ".join(slo.partition)
    what = f"delivery of {slo.object.name}" + (f" (partition {brings})" if brings else "")
    return (
        f"SLO: {what}: {formatting.describe_schedule(slo.schedule)}{grace}; "
        f"{slo.delivery.objective} of the deliveries of {format_duration(slo.window)} on time."
    )


def _levels(contract: Contract, facts: ProductFacts) -> Iterator[tuple[str, str]]:
    watched = {id(promise.slo.sla) for promise in facts.promises}
    for level in contract.sla_properties:
        if id(level) not in watched:
            value = "" if level.value is None else f"{level.value} {level.unit or ''}".strip()
            yield (
                formatting.cut(level.property, 80),
                formatting.cut(value, 200)
                + (f" ({formatting.cut(level.element, 80)})" if level.element else ""),
            )


def subscribe_values(contract: Contract, registry_url: str) -> formatting.Values:
    """Return the page on which a new subscription is edited, and its text: GitLab does not fill it in.

    The page is None if its URL is too long. Source: the query strings documented for new files, of GitHub and
    GitLab.
    """
    text = empty_subscription(contract)
    file = f"subscriptions/{file_name(contract.identity[0])}/TEAM.yaml"
    page = formatting.new_file_page(registry_url)
    names = {"file_name": file} if "/-/tree/" in registry_url else {"filename": file, "value": text}
    return {"url": formatting.link(f"{page}?{urlencode(names, quote_via=quote)}"), "file": file, "text": text}


def _consumer(consumer: ConsumerFacts) -> formatting.Values:
    subscription, approval = consumer.subscription, consumer.approval
    approved = ""
    if approval is not None and subscription.approvers:
        approved = (
            approval.origin if approval.commit else approval.approver and f"approved by {approval.approver}"
        )
        approved = approved or "approval not proven"
    return {
        "team": subscription.consumer.team,
        "purpose": formatting.cut(subscription.purpose, 300),
        "since": str(subscription.start_date),
        "until": str(subscription.end_date) if subscription.end_date else None,
        "contact": subscription.consumer.contact,
        "link": formatting.link(subscription.consumer.contact),
        "approved": approved,
    }


def _how_to_read(facts: ProductFacts, server: Server) -> formatting.Values:
    """Return the access instructions of a server: its keys, and SQL and Spark lines."""
    contract = facts.contract
    variables: dict[str, str] = {}
    database = _filled(server, ("database", "schema"), variables)
    # Tables are named instead of files where both are known.
    place = "" if database else _filled(server, ("location", "path"), variables)
    catalog = _filled(server, ("catalog",), variables)
    tables = [
        ".".join(
            part for part in (catalog, database, schema_object.physical_name or schema_object.name) if part
        )
        for schema_object in contract.objects
    ]
    form = server.get("format") or "parquet"
    layout, _ = extension.layout(server)
    read = f"spark.read.format({python(form)})"
    lines, notes = [], []
    if database:
        lines += _table_lines(tables)
    elif place:
        paths = [place.replace("{object}", schema_object.name) for schema_object in contract.objects][:3]
        tables = [table for path in paths for table in facts.tables.get(fold_location(path), ())]
        placed = facts.placed.get((contract.key, server.server))
        if placed:
            lines += _table_lines(tables)
            notes.append(_placed_note(placed, bool(tables)))
        if layout:
            read += '.option("recursiveFileLookup", "true")'
            notes.append(
                f"The folders are named {formatting.cut(layout.template, 200)}, and Spark does not read "
                f"columns from these names: {', '.join(layout.columns)}. Read the table from the catalog to "
                "get them."
            )
        if not lines:
            lines += [f"{read}.load({python(path)})" for path in dict.fromkeys(paths)]
    notes += [_variable_note(name, default) for name, default in variables.items() if lines]
    keys = [
        (name, formatting.cut(value, 500))
        for name, value in (server.model_extra or {}).items()
        if isinstance(value, str)
    ]
    if layout:
        keys.append(("layout", formatting.cut(layout.template, 500)))
    return {
        "name": server.server,
        "type": server.type,
        "environment": server.environment,
        "said": formatting.cut(server.description, 300),
        "places": [(name, value, formatting.link(value)) for name, value in keys],
        # Long lines are left out, because a shortened one would do something else when pasted.
        "lines": [line for line in lines if len(line) <= _MAX_LINE_CHARS],
        "note": " ".join(notes),
    }


def _filled(server: Server, keys: Sequence[str], variables: dict[str, str]) -> str:
    """Return the first of these keys that is set, "" without any; adds its variables to `variables`."""
    text, defaults = with_defaults(next(filter(None, map(server.get, keys)), ""))
    variables |= defaults
    return text


def _variable_note(name: str, default: str) -> str:
    """Return the note on a variable in the location of a server."""
    name, default = formatting.cut(name, 80), formatting.cut(default, 200)
    if not default:
        return f"Replace <{name}> with the value of the variable {name}: the contract has no default for it."
    return f"{default} is the default of the variable {name}. Use its value instead where it is set."


def _table_lines(tables: Sequence[str]) -> list[str]:
    # Quoting depends on the server's SQL dialect, so only names that need no quotes are shown.
    plain = [name for name in tables if all(map(is_plain_name, name.split(".")))][:3]
    return [
        *(f"SELECT * FROM {name}" for name in plain),  # noqa: S608
        *(f"spark.table({python(name)})" for name in plain),
    ]


def _placed_note(placed: PlacedElsewhere, in_catalog: bool) -> str:
    """Return the note on partitions that a reader of the server's location misses."""
    return (
        f"{pluralize(placed.count, 'partition')} published outside of this location, e.g. "
        f"{formatting.cut(placed.partition, 200)} at {formatting.cut(placed.folder, 300)}. "
        + (
            "The catalog has the location of each partition: read the table from it, not the files below "
            "this location."
            if in_catalog
            else "Read these folders too: the files below this location are not all of the table."
        )
    )


def _edge(edge: tuple[str, str, str], page_of: PageLookup) -> formatting.Values:
    own, other, other_object = edge
    return {"own": own, "contract": other, "object": other_object, "page": page_of(other)}


_UP = "../../"
_COLUMNS = ("inputs of inputs", "inputs", "this product", "made from it", "made from those")


def _lineage_graph(lineage: Lineage) -> Svg | None:
    """Return the lineage of a product as a graph, or None without any neighbour.

    A node shows the badge of its product, which is always that of the newest build: the states of neighbours
    are no inputs of this page.
    """
    if lineage == NO_LINEAGE:
        return None
    columns = [
        (heading, [_node(node, is_own=heading == "this product") for node in nodes])
        for heading, nodes in zip(_COLUMNS, lineage.columns, strict=True)
    ]
    counts = [sum(node.count or 1 for node in lineage.columns[number]) for number in (1, 3)]
    label = (
        f"Lineage graph: {pluralize(counts[0], 'input')} and {pluralize(counts[1], 'product')} made from it, "
        "listed below, and their neighbours"
    )
    return graph(columns, lineage.links, label)


def _node(node: LineageNode, *, is_own: bool) -> Node:
    label = formatting.cut(node.label, 200)
    if node.count:
        products = pluralize(node.count, "product")
        return Node(label, f"{label}: {products}", f"{_UP}{node.page}", note=products)
    badge = f"{_UP}{node.page.removesuffix('index.html')}badge.svg"
    return Node(label, label, "" if is_own else f"{_UP}{node.page}", badge=badge)


# Machine-readable status (`status.json`), and a badge to embed in other pages.

# Background colours on which white text has a contrast of at least 4.5.
_BACKGROUNDS = {
    ProductState.UNREADABLE: "#8a1f17",
    ProductState.BROKEN: "#a3231a",
    ProductState.LATE: "#8f4a00",
    ProductState.UNKNOWN: "#5b4a8a",
    ProductState.SPENT: "#8f4a00",
    ProductState.UNCHECKED: "#4d5561",
    ProductState.FINE: "#1a6b3a",
    ProductState.RESTING: "#4d5561",
}
_LETTER_WIDTH = 7


def status_json(facts: ProductFacts) -> dict[str, Any]:
    """Return the contract's part of `dq status --format json`, with the last cycles of each SLO.

    Sample rows are left out, because readers of the portal may not have access to the data.
    """
    return {
        "contract": facts.card.key,
        "version": facts.contract.version,
        "state": facts.state.value,
        "as_of": formatting.instant(facts.now).iso,
        "deliveries": [
            {
                **promise_as_dict(promise),
                "cycles": [_cycle(record) for record in promise.cycles[-formatting.MAX_CYCLES :]],
            }
            for promise in facts.promises
        ],
        "complete_through": [standing.as_dict() for standing in facts.complete_through],
        "checks": [
            {name: value for name, value in line.as_dict().items() if name != "samples"}
            for object_facts in facts.objects
            for line in object_facts.quality.lines
        ],
        "agreements": [
            standing.as_dict() for object_facts in facts.objects for standing in object_facts.agreements
        ],
        "incidents": [
            incident_as_row(incident_facts.incident) for incident_facts in reversed(facts.open_incidents)
        ],
    }


def _cycle(record: CycleRecord) -> dict[str, Any]:
    """Return the main fields of a cycle; `dq status --format json` has all of them."""
    return {
        "due_at": record.cycle.due_at.isoformat(),
        "status": record.status,
        "delivered_at": iso(record.delivered_at),
        "source": record.source,
    }


def badge(state: ProductState) -> dict[str, Any]:
    """Return the values of a badge, e.g. `data | late`."""
    text = formatting.STATES[state].text
    width = len(text) * _LETTER_WIDTH + 16
    # In badge.svg, the part with the word "data" is 44 pixels wide.
    return {"text": text, "ground": _BACKGROUNDS[state], "width": width, "whole": 44 + width}
