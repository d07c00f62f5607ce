"""Row counts that producers publish, compared with the rows in the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dq.contracts.agreement import OtherSide, SumAgreement, agreements_of
from dq.contracts.check_result import CheckResult, GroupResult, Status
from dq.contracts.model import SchemaObject
from dq.contracts.outcome import Severity, pluralize
from dq.contracts.types import DataType, row_type
from dq.dataquality.answers.statistics import PARTITION_PARSERS
from dq.dataquality.backtest import Backtest, RuleHistory
from dq.dataquality.check import count_rows
from dq.dataquality.clauses.metric_rule import group_label
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.cycle_store import RowClaim
from dq.dataquality.model.column import MASK, classified, struct_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.run_context import Partition
from dq.dataquality.report import Report
from dq.dataquality.request import Request, find_object
from dq.dataquality.spark.columnar_files import NULL_PARTITION
from dq.dataquality.spark.dataset import FILE_FORMATS, Dataset
from dq.dataquality.spark.failing_rows import MOST_CHARACTERS

CHECK = "delivered_rows"
# Number of contradicting partitions, and of groups in each, that are named in a message.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _GroupCount:
    """Counted and published rows of one group; `value` is None for NULL."""

    column: str
    value: str | None
    rows: int
    published: int

    def __str__(self) -> str:
        name = "NULL" if self.value is None else self.value or "''"
        return f"{self.column} {name}: {pluralize(self.rows, 'row')}"


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A claim with the counted rows. `problem` is the reason if its groups could not be counted."""

    claim: RowClaim
    rows: int
    groups: tuple[_GroupCount, ...] = ()
    problem: str = ""

    @property
    def differing_groups(self) -> list[_GroupCount]:
        return [group for group in self.groups if group.rows != group.published]

    @property
    def status(self) -> Status:
        if self.rows != self.claim.rows or self.differing_groups:
            return Status.FAIL
        return Status.ERROR if self.problem else Status.PASS

    def __str__(self) -> str:
        """Return the difference as a clause of a sentence, or the problem."""
        subject = f"{label(self.claim.partition)} " if self.claim.partition else ""
        source = f" ({_source(self.claim)})" if self.claim.revision else ""
        if self.status is Status.ERROR:
            return f"{subject}rows by group cannot be counted: {self.problem}{source}"
        if self.rows != self.claim.rows:
            has = f"{subject}has " if subject else ""
            text = f"{has}{pluralize(self.rows, 'row')}, but {_origin(self.claim)} says {self.claim.rows:,}"
        else:
            text = f"{subject}has other groups than {_origin(self.claim)}"
        groups = [f"{group}, {group.published:,} published" for group in self.differing_groups]
        return f"{text}{source}{': ' if groups else ''}{_first(groups, 'group')}"


def _first(texts: Sequence[str], noun: str) -> str:
    remaining = len(texts) - _NAMED
    ending = [f"and {pluralize(remaining, f'more {noun}')}"] if remaining > 0 else []
    return "; ".join([*texts[:_NAMED], *ending])


def with_delivered_rows(report: Report, request: Request, claims: Sequence[RowClaim]) -> Report:
    """Return the report with a result for the claimed row counts, if there are any for its scope.

    A run of selected rules compares none. Raises as `count_rows`.
    """
    schema_object = find_object(request.contract, request.object)
    if request.rules:
        return report
    comparisons = _compare(claims, report.rows, request, schema_object)
    if not comparisons:
        return report
    return replace(report, results=(*report.results, _result(schema_object, comparisons)))


ClaimsOf = Callable[[OtherSide], tuple[SchemaObject, Sequence[RowClaim]] | None]
"""Returns the object that another side is, and its claimed row counts; None if they are unknown."""


def with_receipts_of_other_sides(report: Report, request: Request, claims_of: ClaimsOf) -> Report:
    """Return the report; results of sums that differ from another side name the receipt of that side.

    They and a result for the object's own receipt are in one report, and so in one incident.
    """
    agreements = agreements_of(find_object(request.contract, request.object))
    results = []
    for result in report.results:
        rule = agreements.get(result.clause)
        if isinstance(rule, SumAgreement) and result.status is Status.FAIL:
            result = _with_receipt(result, rule, request, claims_of(rule.other))
        results.append(result)
    return replace(report, results=tuple(results))


def _with_receipt(
    result: CheckResult,
    rule: SumAgreement,
    request: Request,
    source: tuple[SchemaObject, Sequence[RowClaim]] | None,
) -> CheckResult:
    schema_object, claims = source if source is not None else (None, ())
    claim = None if schema_object is None else _claim_of_scope(schema_object, rule, request, claims)
    if schema_object is None or claim is None:
        return result
    subject = f"receipt of {replace(rule.other, where=None)}"
    rows = pluralize(claim.rows, "row")
    groups = "".join(f", {text}" for text in _published_groups(result, rule, schema_object, claim))
    return replace(
        result,
        # Messages of incidents are short, so the groups may be cut off.
        observed=f"{subject}: {rows}; {result.observed}",
        message=f"{result.message}; {subject}: {rows}{groups} ({_source(claim)})",
    )


def _claim_of_scope(
    schema_object: SchemaObject, rule: SumAgreement, request: Request, claims: Sequence[RowClaim]
) -> RowClaim | None:
    """Return the claim of the other side for the checked partition, or for a table without partitions."""
    kinds, renamed = _key_kinds(schema_object), _other_names(rule)
    if len(request.partitions or ()) > 1:
        return None
    (scope,) = request.partitions or ({},)
    partition = {renamed.get(name.lower(), name): text for name, text in scope.items()}
    values = {name: value for name, value in _values(kinds, partition).items() if name in kinds}
    matching = [claim for claim in claims if _values(kinds, dict(claim.partition)) == values]
    if values.keys() != kinds.keys():
        return None
    return max(matching, key=lambda claim: claim.delivered_at, default=None)


def _published_groups(
    result: CheckResult, rule: SumAgreement, schema_object: SchemaObject, claim: RowClaim
) -> list[str]:
    """Return the published rows of the groups that differ most, if they were published by the same column."""
    if len(rule.by) != 1:
        return []
    column = _other_names(rule).get(rule.by[0].lower(), rule.by[0])
    published = next((dict(groups) for name, groups in claim.rows_by if name.lower() == column.lower()), None)
    if published is None or column.lower() in classified(schema_object):
        return []
    kind = struct_field(row_type(schema_object), column)
    rows = {_parsed(kind, text): count for text, count in published.items()}
    failed = [group for group in result.groups if group.status is Status.FAIL]
    failed.sort(key=lambda group: -(group.value or 0))
    return [
        f"{group_label(group.key)} {rows.get(_parsed(kind, group.key[0]), 0):,}" for group in failed[:_NAMED]
    ]


def _other_names(rule: SumAgreement) -> dict[str, str]:
    """Return the names of renamed columns on the other side, by their names in lower case."""
    return {name.lower(): other for name, other in rule.renamed}


def with_delivered_rows_by_partition(
    past: Backtest, request: Request, claims: Sequence[RowClaim]
) -> Backtest:
    """Return the back-test with the claimed row counts of its partitions, if there are any.

    A run of selected rules compares none. Raises as `count_rows`.
    """
    schema_object = find_object(request.contract, request.object)
    kinds = _key_kinds(schema_object)
    tested = {_key(kinds, dict(partition)): partition for partition in past.partitions}
    selected = [claim for claim in claims if _key(kinds, dict(claim.partition)) in tested]
    if request.rules or not selected:
        return past
    comparisons = _compare_partitions(selected, request, kinds)
    results: list[tuple[Partition, CheckResult]] = [
        (tested[_key(kinds, dict(comparison.claim.partition))], _result(schema_object, [comparison]))
        for comparison in comparisons
    ]
    order = {partition: number for number, partition in enumerate(past.partitions)}
    results.sort(key=lambda result: order[result[0]])
    if not results:
        return past
    first = results[0][1]
    history = RuleHistory(
        check=CHECK,
        clause=first.clause,
        name=first.name,
        property="",
        severity=first.severity,
        allowed="row counts of the receipts",
        at=first.at,
        results=tuple(results),
        batched_count=len(results),
    )
    return replace(past, rules=(*past.rules, history))


def _compare(
    claims: Sequence[RowClaim], rows: int | None, request: Request, schema_object: SchemaObject
) -> list[_Comparison]:
    kinds = _key_kinds(schema_object)
    if not kinds:
        # Tables with a log keep rows of earlier deliveries, so that counts are not comparable.
        is_replaced = not isinstance(request.data, Dataset) or request.data.format in FILE_FORMATS
        newest = max(
            (claim for claim in claims if is_replaced), key=lambda claim: claim.delivered_at, default=None
        )
        return [_compare_scope(newest, rows, request)] if newest is not None else []
    scopes = [_values(kinds, scope) for scope in request.partitions or ()]
    selected = [
        claim
        for claim in claims
        if (values := _values(kinds, dict(claim.partition))).keys() == kinds.keys()
        and (not scopes or any(scope.items() <= values.items() for scope in scopes))
    ]
    if len(scopes) == 1 and scopes[0].keys() == kinds.keys():
        return [_compare_scope(claim, rows, request) for claim in selected]
    return _compare_partitions(selected, request, kinds)


def _compare_scope(claim: RowClaim, rows: int | None, request: Request) -> _Comparison:
    """Compare a claim with all rows of a request, whose number is `rows` if it is known."""
    if rows is None:
        counted = count_rows(request, ())
        assert not isinstance(counted, Failure)
        rows = counted.get((), 0)
    counts = {column: count_rows(request, (column,)) for column, _ in claim.rows_by}
    return _comparison(request, claim, rows, counts)


def _compare_partitions(
    claims: Sequence[RowClaim], request: Request, kinds: Mapping[str, DataType | None]
) -> list[_Comparison]:
    """Compare claims with their partitions. One that was removed since does not contradict its receipt."""

    def count_claimed(
        claims: Sequence[RowClaim], *columns: str
    ) -> dict[tuple[object, ...], Counter[tuple[str | None, ...]]] | Failure:
        partitions = [dict(claim.partition) for claim in claims]
        counted = count_rows(replace(request, partitions=partitions), (*kinds, *columns))
        if isinstance(counted, Failure):
            return counted
        by_partition: dict[tuple[object, ...], Counter[tuple[str | None, ...]]] = {}
        for group, rows in counted.items():
            key = _key(kinds, dict(zip(kinds, group[: len(kinds)], strict=True)))
            by_partition.setdefault(key, Counter())[group[len(kinds) :]] += rows
        return by_partition

    if not claims:
        return []
    totals = count_claimed(claims)
    if isinstance(totals, Failure):
        return [_Comparison(claim, claim.rows, problem=totals.message) for claim in claims]
    keys = {claim: _key(kinds, dict(claim.partition)) for claim in claims}
    present = [claim for claim in claims if keys[claim] in totals]
    columns = dict.fromkeys(column for claim in present for column, _ in claim.rows_by)
    counts = {
        column: count_claimed([claim for claim in present if column in dict(claim.rows_by)], column)
        for column in columns
    }
    return [
        _comparison(
            request,
            claim,
            totals[keys[claim]].total(),
            {
                column: counted if isinstance(counted, Failure) else counted.get(keys[claim], {})
                for column, counted in counts.items()
            },
        )
        for claim in present
    ]


def _comparison(
    request: Request,
    claim: RowClaim,
    rows: int,
    counts: Mapping[str, Mapping[tuple[str | None, ...], int] | Failure],
) -> _Comparison:
    schema_object = find_object(request.contract, request.object)
    problems = [counted.message for counted in counts.values() if isinstance(counted, Failure)]
    groups = [
        group
        for column, published in claim.rows_by
        if not isinstance(counted := counts[column], Failure)
        for group in _group_counts(schema_object, column, dict(published), counted)
    ]
    return _Comparison(claim, rows, tuple(groups), problems[0] if problems else "")


def _group_counts(
    schema_object: SchemaObject,
    column: str,
    published: Mapping[str | None, int],
    counted: Mapping[tuple[str | None, ...], int],
) -> Iterator[_GroupCount]:
    """Yield every group that was published or counted. Values are compared as those of the column's type."""
    kind = struct_field(row_type(schema_object), column)
    counted_rows: Counter[object] = Counter()
    texts: dict[object, str | None] = {}
    for (text,), rows in counted.items():
        counted_rows[_parsed(kind, text)] += rows
        texts[_parsed(kind, text)] = text
    published_rows = {_parsed(kind, text): rows for text, rows in published.items()}
    texts |= {_parsed(kind, text): text for text in published}
    is_masked = column in classified(schema_object)
    for value, text in sorted(texts.items(), key=lambda item: (item[1] is None, item[1] or "")):
        shown = MASK if is_masked and text is not None else text and text[:MOST_CHARACTERS]
        yield _GroupCount(column, shown, counted_rows[value], published_rows.get(value, 0))


def _key_kinds(schema_object: SchemaObject) -> dict[str, DataType | None]:
    """Return the types of the partition columns, by their names in lower case."""
    schema = row_type(schema_object)
    return {prop.column.lower(): struct_field(schema, prop.column) for prop in schema_object.partition_keys()}


def _values(kinds: Mapping[str, DataType | None], partition: Mapping[str, str | None]) -> dict[str, object]:
    """Return the values of a partition, such that equal ones are equal however they are written."""
    return {key.lower(): _parsed(kinds.get(key.lower()), text) for key, text in partition.items()}


def _key(kinds: Mapping[str, DataType | None], partition: Mapping[str, str | None]) -> tuple[object, ...]:
    values = _values(kinds, partition)
    return tuple(values.get(key) for key in kinds)


def _parsed(kind: DataType | None, text: str | None) -> object:
    if text is None or text == NULL_PARTITION:
        return None
    name = kind.name if kind is not None else ""
    try:
        return PARTITION_PARSERS[name](text, kind) if kind is not None else text
    except (KeyError, ValueError, ArithmeticError):
        return text.lower() if name == "boolean" else text


def _result(schema_object: SchemaObject, comparisons: Sequence[_Comparison]) -> CheckResult:
    failures = [comparison for comparison in comparisons if comparison.status is Status.FAIL]
    errors = [comparison for comparison in comparisons if comparison.status is Status.ERROR]
    shown = failures or errors
    status = Status.FAIL if failures else Status.ERROR if errors else Status.PASS
    source = f"{pluralize(len(comparisons), 'receipt')} of 'dq publish'"
    if not comparisons[0].claim.revision:
        source = _origin(comparisons[0].claim)
    message = _first([str(comparison) for comparison in shown], "partition")
    result = CheckResult(
        check=CHECK,
        clause="receipt",
        object=schema_object.name,
        property="",
        status=status,
        severity=Severity.ERROR,
        observed=f"{len(failures):,} of {pluralize(len(comparisons), 'partition')}",
        allowed="row counts of the receipts",
        message=f"{schema_object.name}: {message or f'row counts match {source}'}",
        at=schema_object.locate(),
        value=float(len(failures)),
        threshold={"mustBe": 0},
        name=f"schema/{schema_object.name}/receipt",
    )
    if len(comparisons) == 1:
        return _single_result(result, comparisons[0])
    return replace(
        result,
        group_columns=tuple(key for key, _ in comparisons[0].claim.partition),
        groups=tuple(
            GroupResult(
                tuple(value for _, value in comparison.claim.partition),
                comparison.status,
                pluralize(comparison.rows, "row"),
                float(comparison.rows),
            )
            for comparison in comparisons
        ),
    )


def _single_result(result: CheckResult, comparison: _Comparison) -> CheckResult:
    """Return the result of one claim, with its groups if they are of one column and may be shown."""
    claim, differing = comparison.claim, comparison.differing_groups
    columns = {group.column for group in comparison.groups}
    if len(columns) == 1 and not any(group.value == MASK for group in comparison.groups):
        result = replace(
            result,
            group_columns=tuple(columns),
            groups=tuple(
                GroupResult(
                    (group.value,),
                    Status.PASS if group.rows == group.published else Status.FAIL,
                    pluralize(group.rows, "row"),
                    float(group.rows),
                )
                for group in comparison.groups
            ),
        )
    if comparison.rows == claim.rows and differing:
        published = [replace(group, rows=group.published) for group in differing]
        return replace(
            result,
            observed=_first([str(group) for group in differing], "group"),
            allowed=f"{_first([str(group) for group in published], 'group')} per {_claimed_by(claim)}",
            value=float(len(differing)),
        )
    return replace(
        result,
        observed=pluralize(comparison.rows, "row"),
        allowed=f"{pluralize(claim.rows, 'row')} per {_claimed_by(claim)}",
        value=float(comparison.rows),
        threshold={"mustBe": claim.rows},
        unit="rows",
    )


def _origin(claim: RowClaim) -> str:
    return "its receipt" if claim.revision else "--rows"


def _claimed_by(claim: RowClaim) -> str:
    return f"receipt ({_source(claim)})" if claim.revision else "--rows"


def _source(claim: RowClaim) -> str:
    server = f" on {claim.server}" if claim.server else ""
    return f"revision {claim.revision}, published {claim.delivered_at:%Y-%m-%d %H:%MZ}{server}"
