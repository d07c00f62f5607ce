"""TABLE: every rule of the comparison: what it says, and the shortest way that breaks nobody.

Ids are API: never renamed. Which attribute leads to which rule is in `table`, how bad it is in the judgement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ChangeRule(NamedTuple):
    """What a rule says of a change, and what to do instead."""

    problem: str
    instead: str


_ADD_BESIDE = "Add a new column beside it, fill both, deprecate the old one, and remove it in the next major."
_NEXT_MAJOR = "Publish it as the next major beside this one, which stays as deprecated until its end."
_SHOW = "Nothing to do: it is told so that nobody wonders."
_TELL = "Tell the consumers before it ships."
_WRITERS = "Make the writers ready first, check the data that is there, then promise it."
_BUMP = "Write the version that is asked for."

# What these say is how a change is announced, not whom it breaks.
VERSION_POLICY = frozenset(
    (
        "deprecation-end-missing",
        "deprecation-too-short",
        "version-bump-ok",
        "version-bump-too-small",
        "version-decreased",
        "version-not-bumped",
        "version-not-semver",
    )
)

_ROWS: Mapping[str, tuple[str, str]] = {
    "accept-expired": ("the waiver for this change has expired", "Mend the change, or agree on a new date."),
    "allowed-values-added": ("only listed values are allowed now", _WRITERS),
    "allowed-values-changed": ("allowed values were exchanged", _ADD_BESIDE),
    "allowed-values-narrowed": ("values are not allowed any more", _WRITERS),
    "allowed-values-removed": ("any value may come now", "Keep the list, and add to it what is missing."),
    "allowed-values-widened": ("values may come that consumers do not know", _TELL),
    "base-invalid": (
        "the old contract cannot be read, so it is judged as new",
        "Nothing to do: it is mended.",
    ),
    "base-ref-invalid": ("the base is no name of a commit", "Write --base origin/main."),
    "base-unavailable": ("the base cannot be read, so nothing can be compared", "Fetch it and run again."),
    "bound-added": ("values are limited now", _WRITERS),
    "bound-relaxed": ("values may go beyond the limit that was promised", "Keep the limit."),
    "bound-removed": ("the limit of the values is gone", "Keep the limit, wide enough for what is coming."),
    "bound-tightened": ("the limit of the values is tighter", _WRITERS),
    "classification-lowered": ("data is said to be less confidential", "Let its owner confirm it."),
    "classification-raised": ("data is more confidential, and access may close", _TELL),
    "column-added-defaulted": ("a required column with a default came", _SHOW),
    "column-added-middle": ("a column came between others", "Add it at the end."),
    "column-added-optional": ("an optional column came", _SHOW),
    "column-added-required": ("a required column came that old rows lack", "Add it as optional first."),
    "column-case-changed": (
        "only the case of the name changed",
        "Keep the name: some readers are case sensitive.",
    ),
    "column-deprecated": ("the column is marked as deprecated, or no more", _SHOW),
    "column-label-changed": ("the label changed; the name in the data did not", _SHOW),
    "column-moved": ("the column moved to another level", _ADD_BESIDE),
    "column-name-reused": (
        "the name stood for another column before",
        "Give the new column a name of its own.",
    ),
    "column-removed": (
        "the column is gone",
        "Keep it and mark it 'deprecated: true'; remove it in the next major.",
    ),
    "column-removed-deprecated": ("the column is gone after its notice", "Publish it as the next major."),
    "column-renamed": ("the column has another name", _ADD_BESIDE),
    "column-reordered": ("the columns stand in another order", "Keep the order; add at the end."),
    "contract-added": ("the contract is new", _SHOW),
    "contract-id-changed": ("the id changed, so the old contract is gone", "Keep the id."),
    "contract-id-duplicate": ("two files have this id and major version", "Remove one of the two."),
    "contract-major-added": ("a new major came beside the old one", _SHOW),
    "contract-moved": ("the file moved", _SHOW),
    "contract-moved-referenced": (
        "the file moved, and another contract names its old path",
        "Mend the reference.",
    ),
    "contract-name-changed": ("the contract is called otherwise", _SHOW),
    "contract-removed": (
        "the contract is gone while it was in force",
        "Keep it as deprecated until its end.",
    ),
    "contract-removed-early": ("the contract is gone before its end", "Keep it until its end of support."),
    "contract-removed-retired": ("the contract is gone after its end", _SHOW),
    "custom-property-changed": ("a custom property changed", _SHOW),
    "deprecation-end-missing": ("it is deprecated without an end", "Add the service level 'endOfSupport'."),
    "deprecation-too-short": ("its end of support is too near", "Set a later end of support."),
    "description-changed": ("the documentation changed", _SHOW),
    "end-date-earlier": ("it ends earlier than was promised", "Keep the date."),
    "no-change": ("nothing changed", _SHOW),
    "owner-changed": ("its people changed", _SHOW),
    "owner-removed": ("nobody is named to ask", "Name who takes over."),
    "partition-added": ("a partition key came", _NEXT_MAJOR),
    "partition-granularity-changed": ("the partitions have another grain", _NEXT_MAJOR),
    "partition-removed": ("a partition key is gone", _NEXT_MAJOR),
    "partition-reordered": ("the partition keys stand in another order", _NEXT_MAJOR),
    "partition-type-changed": ("a partition key has another type", _NEXT_MAJOR),
    "pattern-added": ("texts must match a pattern now", _WRITERS),
    "pattern-changed": ("texts match another pattern", "Keep the pattern; dq cannot tell which is wider."),
    "pattern-removed": ("texts need not match the pattern any more", "Keep the pattern."),
    "price-raised": ("it costs more", _TELL),
    "primary-key-added": ("a primary key is promised now", _WRITERS),
    "primary-key-changed": ("the primary key is another one", _NEXT_MAJOR),
    "primary-key-reordered": ("the primary key names its columns in another order", _SHOW),
    "quality-added": ("a quality rule came", _WRITERS),
    "quality-changed": ("a quality rule asks something else", "Add a second rule, and drop the first later."),
    "quality-label-changed": ("a quality rule is described otherwise", _SHOW),
    "quality-relaxed": ("a quality rule allows more", "Keep the threshold."),
    "quality-removed": ("a quality rule is gone", "Keep the rule."),
    "quality-tightened": ("a quality rule allows less", _WRITERS),
    "relationship-added": ("a relationship is promised now", _WRITERS),
    "relationship-removed": ("a relationship is not promised any more", _TELL),
    "required-added": ("the column is required now", _WRITERS),
    "required-removed": ("the column may hold nulls now", "Keep 'required: true' and write a default value."),
    "role-removed": ("a role is gone or gives other access", "Move its members first."),
    "server-added": ("the data is served at another place too", _SHOW),
    "server-format-changed": ("the data has another format", _NEXT_MAJOR),
    "server-label-changed": ("the server is described otherwise", _SHOW),
    "server-location-changed": ("the data lies at another place", "Serve both places until all have moved."),
    "server-removed": ("the data is not served at this place any more", "Serve it until all have moved."),
    "sla-added": ("a service level is promised now", _WRITERS),
    "sla-changed": ("a service level says something else", _TELL),
    "sla-relaxed": ("data may come later, or less of it", "Keep the level."),
    "sla-removed": ("a service level is not promised any more", "Keep the level."),
    "sla-tightened": ("data must come earlier, or more of it", _WRITERS),
    "status-demoted": (
        "it was in force and is a draft again",
        "Keep the status; draft the change as a new major.",
    ),
    "status-deprecated": ("its end is announced", _SHOW),
    "status-promoted": ("it is one step further", _SHOW),
    "status-reactivated": ("it stays longer than was announced", _SHOW),
    "status-retired": ("it is retired after its end", _SHOW),
    "status-retired-early": ("it is retired before its end", "Deprecate it first, with an end of support."),
    "table-added": ("a table came", _SHOW),
    "table-kind-changed": ("it is another kind of table", "Keep the kind, or offer the other beside it."),
    "table-label-changed": ("the label changed; the name in the catalog did not", _SHOW),
    "table-removed": ("the table is gone", "Keep it and mark it deprecated; remove it in the next major."),
    "table-renamed": ("the table has another name", "Keep the name, or leave a view under the old one."),
    "tags-changed": ("tags changed", _SHOW),
    "type-alias": ("the type is spelt otherwise and is the same", _SHOW),
    "type-changed": ("the type is another one", _ADD_BESIDE),
    "type-declared": ("the type is declared now", _SHOW),
    "type-format-changed": ("the values are written or meant otherwise", _ADD_BESIDE),
    "type-generalized": ("values may come that the old type did not have", _ADD_BESIDE),
    "type-length-decreased": ("texts must be shorter", _WRITERS),
    "type-length-increased": ("texts may be longer than consumers have room for", _TELL),
    "type-narrowed": ("old values do not fit into the new type", _ADD_BESIDE),
    "type-specialized": ("values that the old type had are not allowed any more", _WRITERS),
    "type-timezone-changed": ("the same text means another instant", _ADD_BESIDE),
    "type-undeclared": ("the type is not declared any more", "Keep the type."),
    "type-widened": ("values may come that do not fit into the old type", _TELL),
    "unclassified-change": ("dq does not know this key and cannot judge it", "Have someone look at it."),
    "unique-added": ("values must be unique now", _WRITERS),
    "unique-removed": ("values may repeat, and joins may fan out", "Keep 'unique: true'."),
    "version-bump-ok": ("the version announces the change", _SHOW),
    "version-bump-too-small": ("the version does not announce the change", _BUMP),
    "version-decreased": ("the version went backwards", "Write a higher version."),
    "version-not-bumped": ("the contract changed under the same version", _BUMP),
    "version-not-semver": ("the version is not of the form 1.2.3", "Write three numbers, such as 1.2.3."),
}
RULES: Mapping[str, ChangeRule] = {id_: ChangeRule(*row) for id_, row in _ROWS.items()}
