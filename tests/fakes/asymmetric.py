"""TABLE: rules whose way back is not judged alike, and why.

Everywhere else swapping before and after swaps FORWARD and BACKWARD: what loosens a promise one way tightens
it the other way.
"""

from __future__ import annotations

from collections.abc import Mapping

_PRESENCE = "A query fails without a column or table that it names; nobody fails because one is there."
_FILES = "Old files are read by the new schema, never new files by the old one: reading has one direction."
_GUARANTEE = "A guarantee that goes is a break for who relied on it; one that comes is a warning to writers."
_NOTICE = "Time goes one way: an end that comes nearer takes something away, a later one gives."
_ACCESS = "Losing access or a contact hurts; gaining it asks nothing of writers or history."
_VALUES = "Old rows break a tighter list; an unknown value is only a surprise to readers."
_SECRETS = "Access that closes hurts consumers; a secret that leaks is a matter of policy."
_DECLARED = "A type that is declared changes no data; without it readers are left guessing."
_LENGTH = "Old texts may be too long, which fails; longer ones may be cut by who reads them."

ASYMMETRIC: Mapping[str, str] = {
    "allowed-values-narrowed": _VALUES,
    "allowed-values-widened": _VALUES,
    "classification-lowered": _SECRETS,
    "classification-raised": _SECRETS,
    "column-added-defaulted": _PRESENCE,
    "column-added-middle": _PRESENCE,
    "column-added-optional": _PRESENCE,
    "column-added-required": _PRESENCE,
    "column-name-reused": _FILES,
    "column-removed": _PRESENCE,
    "column-removed-deprecated": _PRESENCE,
    "column-renamed": "In some formats the old files stay readable, but queries name the column either way.",
    "contract-id-changed": _PRESENCE,
    "custom-property-changed": "Columns that no one promised are told either way, at the same level.",
    "end-date-earlier": _NOTICE,
    "owner-changed": _ACCESS,
    "owner-removed": _ACCESS,
    "pattern-changed": "How a text is spelt is not known to be wider or narrower.",
    "price-raised": "What costs less hurts nobody.",
    "primary-key-added": _GUARANTEE,
    "primary-key-changed": _GUARANTEE,
    "quality-added": _GUARANTEE,
    "quality-relaxed": _GUARANTEE,
    "quality-removed": _GUARANTEE,
    "quality-tightened": _GUARANTEE,
    "role-removed": _ACCESS,
    "server-added": _PRESENCE,
    "server-removed": _PRESENCE,
    "sla-added": _GUARANTEE,
    "sla-relaxed": _GUARANTEE,
    "sla-removed": _GUARANTEE,
    "sla-tightened": _GUARANTEE,
    "status-deprecated": _NOTICE,
    "status-reactivated": _NOTICE,
    "table-added": _PRESENCE,
    "table-removed": _PRESENCE,
    "type-changed": _FILES,
    "type-declared": _DECLARED,
    "type-generalized": _FILES,
    "type-length-decreased": _LENGTH,
    "type-length-increased": _LENGTH,
    "type-narrowed": _FILES,
    "type-undeclared": _DECLARED,
    "type-widened": _FILES,
}
