"""Subscriptions of consumers to contracts: files, covered columns, and approvers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from typing import Annotated, NamedTuple, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from dq.contracts.extension import Date, NonEmptyText, Route
from dq.contracts.model import Contract, Identity, Node, Property, SchemaObject, Team, empty_list, parse_model
from dq.contracts.outcome import Finding, Location, nearest
from dq.contracts.yaml import source
from dq.contracts.yaml.portable import block

# A subscription: one consumer's agreed use of a contract, read from a file.


def _positive(number: int) -> int:
    if number < 0:
        raise ValueError("it must not be negative")
    return number


def _not_empty(entries: list[str]) -> list[str]:
    # Without the key everything is covered, but removing the last entry is meant to cover nothing.
    if not entries:
        raise ValueError("it must not be an empty list; without it, everything is meant")
    return entries


def _not_null(value: object) -> object:
    # A key without a value would mean no filter, or no end.
    if value is None:
        raise ValueError("it has no value")
    return value


T = TypeVar("T")
NonEmptyNames = Annotated[list[NonEmptyText], AfterValidator(_not_empty)]
# None only for an absent key; a key that is set has a value.
NotNull = Annotated[T | None, BeforeValidator(_not_null)]
Major = Annotated[int, AfterValidator(_positive)]


class Consumer(Node):
    """A consumer: a team, and in AWS the account and perhaps the one principal that reads."""

    model_config = ConfigDict(title="the consumer")

    team: NonEmptyText = Field(description="The team that consumes.")
    account: NotNull[str] = Field(None, description="Its AWS account, 12 digits in quotes.")
    principal: NotNull[str] = Field(
        None, description="ARN of the only role or user of the account that reads; default: the account."
    )
    contact: NotNull[str] = Field(None, description="How to reach the team, e.g. a channel or an address.")


class AlertTerms(Route):
    """Channel that hears of the breaches that affect the consumer, and when."""

    model_config = ConfigDict(title="the alerts")

    channel: NonEmptyText = Field(description="Channel, name or address in the tool, e.g. '#billing'.")
    tool: NonEmptyText = Field(description="Tool, as under `support` in a contract, e.g. slack.")


class Needs(Node):
    """Guarantees of the contract that the consumer relies on."""

    model_config = ConfigDict(title="the needs")

    by: NotNull[str] = Field(
        None,
        description="Latest time for the first delivery of a day, e.g. '07:30'; '07:30+1d' is the next day.",
    )
    timezone: NonEmptyText = Field("UTC", description="IANA zone of `by`.")
    quality: NonEmptyNames = Field(
        default_factory=empty_list,
        description="Quality rules and constraints, e.g. orders.amount.required; without it, all of the used "
        "columns.",
    )


class Subscription(Node):
    """One consumer's use of a contract. Without `columns` and `tags` it is about all columns.

    `start_date` and `end_date` are its first and its last day, in UTC; no `end_date` means no end.
    """

    model_config = ConfigDict(title="the subscription")

    contract: NonEmptyText = Field(description="The id of the contract.")
    major: Major = Field(description="The major version of the contract.")
    consumer: Consumer = Field(description="The consumer.")
    purpose: NonEmptyText = Field(description="What the data is used for.")
    columns: NonEmptyNames = Field(
        default_factory=empty_list,
        description="The columns that are used, as object.column; an object alone means all of its columns.",
    )
    tags: NonEmptyNames = Field(
        default_factory=empty_list, description="Columns and objects with one of these tags are used too."
    )
    row_filter: NotNull[str] = Field(
        None, description="A SQL predicate: only rows for which it is true are used. Needs a single object."
    )
    start_date: Date = Field(description="The first day, in UTC.")
    end_date: NotNull[Date] = Field(
        None, description="The last day, in UTC; without it, the subscription does not end."
    )
    approvers: list[NonEmptyText] = Field(
        default_factory=empty_list,
        description="Who approved it for the producer, and approves changes.",
    )
    alerts: NotNull[AlertTerms] = Field(
        None, description="Channel that is notified of breaches that affect this use; by default none."
    )
    needs: NotNull[Needs] = Field(
        None, description="What this use relies on; by default, all guarantees of the used columns."
    )

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def identity(self) -> Identity:
        """Id and major version of its contract."""
        return self.contract, str(self.major)

    @property
    def reader(self) -> str:
        """AWS principal that may read, else the account, or ""."""
        return self.consumer.principal or self.consumer.account or ""

    def is_active(self, today: date) -> bool:
        """Return True if it is active on this day; start and end date are inclusive."""
        return self.start_date <= today and not self.is_expired(today)

    def is_expired(self, today: date) -> bool:
        """Return True if its last day is past."""
        return self.end_date is not None and self.end_date < today


def file_name(text: str) -> str:
    """Return a text as the name of a file or folder: lower case, without spaces."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-").lower() or "subscription"


def empty_subscription(contract: Contract) -> str:
    """Return the YAML text of a subscription to a contract whose consumer is to be filled in."""
    id_, major = contract.identity
    keys: dict[str, object] = {"contract": id_}
    if major.isdecimal():
        keys["major"] = int(major)
    blank = ("consumer: {team: }", "purpose:", "columns: []", "startDate:")
    return "".join(f"{line}\n" for line in (*block(keys, ""), *blank))


def read(data: bytes, file: str) -> tuple[Subscription | None, list[Finding]]:
    """Read a subscription file; return it, or None if it is invalid, and the findings by location.

    Never raises for the content of the file. If there are findings, only use the names in it.
    """
    document, findings = source.read(data, file)
    if document is None:
        return None, [_adapt_finding(finding) for finding in findings]
    subscription, form_findings, _ = parse_model(Subscription, document)
    return subscription, sorted([*findings, *form_findings], key=lambda finding: finding.at)


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of a subscription file, for editors."""
    schema = Subscription.model_json_schema(ref_template="#/$defs/{model}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "dq subscription"}


def _adapt_finding(finding: Finding) -> Finding:
    """Return a finding of the YAML reader with a message for subscriptions."""
    if finding.rule != "not-a-contract":
        return finding
    hint = "Write a mapping that begins with 'contract: …' and 'major: …'."
    return replace(finding, rule="wrong-type", hint=hint)


# Objects and columns of a contract that a subscription covers.


@dataclass(frozen=True, slots=True)
class CoveredObject:
    """An object that a subscription covers: all columns, or these distinct properties, in order.

    `paths` are the properties as a diff names them, e.g. `orders.customer.street`, and `fields` those in a
    column that is not covered itself.
    """

    object: SchemaObject
    all_columns: bool
    properties: tuple[Property, ...] = ()
    paths: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Covered columns in the data, in the object's order, without those whose `fields` alone are
        covered.
        """
        if self.all_columns:
            return tuple(prop.column for prop in self.object.properties)
        return tuple(
            prop.column
            for prop in self.object.properties
            if any(prop is covered_property for covered_property in self.properties)
        )

    def walk_properties(self) -> Iterator[Property]:
        """Yield every covered property, including nested ones."""
        if self.all_columns:
            yield from self.object.walk()
            return
        stack = list(self.properties)
        while stack:
            prop = stack.pop()
            yield prop
            stack += prop.children()


def covered_objects(subscription: Subscription, contract: Contract) -> list[CoveredObject]:
    """Return the objects that the subscription covers, in the contract's order."""
    if not subscription.columns and not subscription.tags:
        return [CoveredObject(schema_object, all_columns=True) for schema_object in contract.objects]
    covered = []
    for schema_object in contract.objects:
        entries = [name for name in subscription.columns if _find_object(name, contract) is schema_object]
        if any(name in (schema_object.name, schema_object.physical_name) for name in entries) or _has_tag(
            schema_object.tags, subscription
        ):
            covered.append(CoveredObject(schema_object, all_columns=True))
            continue
        property_paths = {_property_path(name, schema_object) for name in entries}
        used_paths = [
            column_path
            for column_path in column_paths(schema_object)
            if property_paths & column_path.spellings or _has_tag(column_path.property.tags, subscription)
        ]
        if used_paths:
            properties, paths = (
                tuple(column_path.property for column_path in used_paths),
                tuple(column_path.path for column_path in used_paths),
            )
            top_columns = {column_path.top for column_path in used_paths if column_path.is_column}
            fields = tuple(
                column_path.path for column_path in used_paths if column_path.top not in top_columns
            )
            covered.append(CoveredObject(schema_object, False, properties, paths, fields))
    return covered


def unknown_columns(subscription: Subscription, contract: Contract) -> Iterator[tuple[int, str, str | None]]:
    """Yield the entries of `columns` that the contract does not have: index, text, and the closest match."""
    for index, name in enumerate(subscription.columns):
        schema_object = _find_object(name, contract)
        property_path = _property_path(name, schema_object) if schema_object else ""
        if schema_object is None or (
            property_path
            and not any(property_path in column_path.spellings for column_path in column_paths(schema_object))
        ):
            yield index, name, nearest(name, _element_names(contract))


def unknown_tags(subscription: Subscription, contract: Contract) -> Iterator[tuple[int, str, str | None]]:
    """Yield the entries of `tags` that no column and no object has: index, text, and the closest match."""
    known_tags = {
        tag
        for schema_object in contract.objects
        for tags in (schema_object.tags, *(prop.tags for prop in schema_object.properties))
        for tag in tags
    }
    for index, tag in enumerate(subscription.tags):
        if tag not in known_tags:
            yield index, tag, nearest(tag, sorted(known_tags))


def affects(subscription: Subscription, contract: Contract, path: str) -> bool:
    """Return True if a change at this path, as a diff names it, affects the subscription.

    A change of the whole contract or object does, and one above or below a covered column.
    """
    if not path:
        return True
    objects_by_column = {
        schema_object.column: schema_object
        for schema_object in contract.objects
        if overlaps(schema_object.column, path)
    }
    if not objects_by_column:
        # Servers, service levels etc. affect all subscriptions.
        return True
    for covered_object in covered_objects(subscription, contract):
        if covered_object.object.column in objects_by_column and (
            covered_object.all_columns or any(overlaps(own_path, path) for own_path in covered_object.paths)
        ):
            return True
    return False


def locate_use(subscription: Subscription, contract: Contract, path: str) -> Location:
    """Return the location of the entry that covers a path of a diff, or of the whole subscription."""
    for index, name in enumerate(subscription.columns):
        single = subscription.model_copy(update={"columns": [name], "tags": []})
        if affects(single, contract, path):
            return subscription.locate("columns", index)
    return subscription.locate("tags" if subscription.tags else "contract")


def overlaps(first: str, second: str) -> bool:
    """Return True if one path is equal to, above or below the other, e.g. `orders` and `orders.id`."""
    short, long = sorted((first, second), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}[", f"{short}{{"))


def _find_object(name: str, contract: Contract) -> SchemaObject | None:
    """Return the object that an entry begins with, or None; the longest match if there are several."""
    matches = [
        (len(own_name), schema_object)
        for schema_object in contract.objects
        for own_name in (schema_object.name, schema_object.physical_name)
        if own_name and (name == own_name or name.startswith(f"{own_name}."))
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def _property_path(name: str, schema_object: SchemaObject) -> str:
    """Return the path of the property in an entry that begins with this object's name."""
    own_name = max(
        (
            candidate
            for candidate in (schema_object.name, schema_object.physical_name)
            if candidate and overlaps(candidate, name)
        ),
        key=len,
    )
    return name[len(own_name) + 1 :]


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A property with one value per row: its path in a diff, its column, and its possible spellings."""

    property: Property
    path: str
    top: str
    spellings: frozenset[str]
    is_column: bool


def column_paths(schema_object: SchemaObject) -> Iterator[ColumnPath]:
    for properties in schema_object.single_valued_paths():
        path = ".".join((schema_object.column, *(prop.column for prop in properties)))
        names = [[name for name in (prop.name, prop.physical_name) if name] for prop in properties]
        spellings = frozenset(map(".".join, product(*names)))
        yield ColumnPath(properties[-1], path, properties[0].column, spellings, len(properties) == 1)


def _element_names(contract: Contract) -> list[str]:
    return [
        name
        for schema_object in contract.objects
        for name in (
            schema_object.name,
            *(f"{schema_object.name}.{prop.name or prop.column}" for prop in schema_object.properties),
        )
    ]


def _has_tag(tags: list[str], subscription: Subscription) -> bool:
    return not set(subscription.tags).isdisjoint(tags)


# People and teams that may approve the use of a contract.

APPROVING_ROLES = ("owner", "steward", "approver")
_SEPARATOR = re.compile(r"[,;\n]")


def approvers(contract: Contract, start_date: date) -> list[str]:
    """Return the names that may approve a subscription that begins on `start_date`, each once, in order.

    These are the team's name, its members whose role is one of `APPROVING_ROLES`, by username and name, and
    the approvers of the contract's and its servers' roles, except members who left before `start_date`.
    """
    return list(dict.fromkeys(name for text in _names(contract, start_date) if (name := text.strip())))


def is_approver(name: str, contract: Contract, start_date: date) -> bool:
    """Return True if the name may approve a subscription that begins on `start_date`.

    The case of ASCII letters is ignored; other letters only look alike, e.g. a long s and an s.
    """
    return _fold(name) in {_fold(approver) for approver in approvers(contract, start_date)}


def _fold(name: str) -> bytes:
    return name.strip().encode("utf-8", "surrogatepass").lower()


def _names(contract: Contract, start_date: date) -> Iterator[str]:
    if isinstance(contract.team, Team):
        yield contract.team.name or ""
    for member in contract.members():
        title = (member.role or "").lower()
        has_left = bool(member.date_out) and str(member.date_out)[:10] < start_date.isoformat()
        if not has_left and any(word in title for word in APPROVING_ROLES):
            yield from (member.username, member.name or "")
    for role in (*contract.roles, *(role for server in contract.servers for role in server.roles)):
        for text in (role.first_level_approvers, role.second_level_approvers):
            yield from _SEPARATOR.split(text or "")


# Approvals: what an approval covers, who made it, and what proves it.

PROOFS = ("signature", "codeowners", "names")


class ProofTerms(NamedTuple):
    """Terms of a policy for approvals; `proof` is one of `PROOFS`.

    `signers` is the file with the keys of the approvers, below the registry's root, and `branch` the branch
    that changes only reach after a review by their code owners. With `signed_requests`, a signed approval
    needs a request that its author signed with another key of `signers`.
    """

    proof: str = PROOFS[0]
    signers: str = "allowed_signers"
    branch: str = "origin/main"
    signed_requests: bool = False


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval that binds a subscription: approver and commit, or the reasons why none binds.

    `commit` is "" if no commit proves it: the policy does not ask for one, or its review is still pending.
    `request` is the commit with the current terms, or "" if they are not committed.
    """

    approver: str = ""
    commit: str = ""
    reasons: tuple[str, ...] = ()
    request: str = ""

    @property
    def binds(self) -> bool:
        return bool(self.approver)

    @property
    def origin(self) -> str:
        """The commit behind the subscription for a plan, or ""."""
        if self.commit:
            return f"approved by {self.approver} in {self.commit[:12]}"
        return f"requested in {self.request[:12]}" if self.request else ""

    def as_dict(self) -> dict[str, object]:
        return {
            "approver": self.approver or None,
            "commit": self.commit or None,
            "reasons": list(self.reasons),
            "request": self.request or None,
        }


def widened_terms(
    approved: Subscription, current: Subscription, contract_then: Contract | None, contract_now: Contract
) -> list[str]:
    """Return the keys whose current value exceeds the approved one; a shorter time or fewer columns do not.

    The contract may have changed too: a subscription without `columns`, or with `tags`, covers new columns.
    """
    wider = [
        key
        for key, before, after in (
            ("contract", approved.contract, current.contract),
            ("major", approved.major, current.major),
            ("consumer.team", approved.consumer.team, current.consumer.team),
            ("consumer.account", approved.consumer.account, current.consumer.account),
            ("consumer.principal", approved.consumer.principal, current.consumer.principal),
            ("purpose", approved.purpose, current.purpose),
            ("rowFilter", approved.row_filter, current.row_filter),
        )
        if before != after
    ]
    if contract_then is None or covered_paths(current, contract_now) - covered_paths(approved, contract_then):
        wider.append("columns")
    if current.start_date < approved.start_date:
        wider.append("startDate")
    if approved.end_date is not None and (current.end_date or date.max) > approved.end_date:
        wider.append("endDate")
    return wider


def covered_paths(subscription: Subscription, contract: Contract) -> set[str]:
    """Return the paths of the covered columns and fields, e.g. `orders.address.city`."""
    paths: set[str] = set()
    for part in covered_objects(subscription, contract):
        every_path = {column_path.path for column_path in column_paths(part.object)}
        paths.add(part.object.column)
        paths |= {
            path
            for path in every_path
            if part.all_columns or any(path == own or path.startswith(f"{own}.") for own in part.paths)
        }
    return paths
