"""Identities of people: the columns that hold them, and the spellings that are the same value.

A property names its identities in the custom property `identity`; see `extension.IdentityTerms`.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Iterator

from dq.contracts import extension
from dq.contracts.model import Contract, Property, SchemaObject

EXACT, TEXT, PHONE = "exact", "text", "phone"
# Characters without a glyph, which programs leave in copied texts.
_INVISIBLE = dict.fromkeys((0x0000, 0x00AD, *range(0x200B, 0x2010), 0x2060, 0xFEFF))
_UUID = re.compile(r"(?:urn:uuid:)?\{?([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})\}?")


def identity_properties(schema_object: SchemaObject, name: str) -> Iterator[tuple[Property, str]]:
    """Yield the properties of an object with this identity, at any depth, and their `normalize`."""
    for prop in schema_object.walk():
        terms, _ = extension.identity(prop) if prop.custom_properties else (None, [])
        if terms is not None and name in terms.names:
            yield prop, terms.normalize


def identity_names(contract: Contract) -> frozenset[str]:
    """Return the names of all identities in a contract."""
    return frozenset(
        name
        for schema_object in contract.objects
        for prop in schema_object.walk()
        if prop.custom_properties
        for terms in extension.identity(prop)[:1]
        if terms is not None
        for name in terms.names
    )


def normalized(text: str, normalize: str) -> str:
    """Return the form that all spellings of a value have in common.

    `text` ignores case (Unicode's case folding), the Unicode form (NFKC), invisible characters, and the
    number of spaces between words and around the text. `phone:CODE` leaves the digits, without leading zeros
    and calling codes. `exact` changes nothing.
    """
    if normalize == EXACT:
        return text
    if normalize == TEXT:
        folded = unicodedata.normalize("NFKC", text).translate(_INVISIBLE).casefold()
        return " ".join(unicodedata.normalize("NFKC", folded).split())
    digits = "".join(
        str(unicodedata.digit(sign)) for sign in text if unicodedata.digit(sign, None) is not None
    )
    # A number may begin with the digits of the calling code itself; both spellings end in the same form.
    return re.sub(phone_prefix(normalize), "", digits)


def phone_prefix(normalize: str) -> str:
    """Return the pattern of the leading digits of a phone number that may be left out."""
    return f"^(?:0|{normalize.partition(':')[2]})+"


def spellings(key: str, normalize: str) -> frozenset[str]:
    """Return the normalized texts that are this key: several for a UUID, unless `exact`.

    None for a key that is not a value of such columns, e.g. a phone number without digits.
    """
    form = normalized(key, normalize)
    match = _UUID.fullmatch(form) if normalize == TEXT else None
    if match is None:
        return frozenset({form} if form else ())
    value = uuid.UUID(match[1])
    return frozenset({str(value), value.hex, f"{{{value}}}", f"{{{value.hex}}}", value.urn})


def as_uuid(key: str) -> bytes | None:
    """Return the 16 bytes of a UUID in any spelling, or None for other texts."""
    match = _UUID.fullmatch(normalized(key, TEXT))
    return uuid.UUID(match[1]).bytes if match else None
