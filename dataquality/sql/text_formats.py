"""TABLE: the named formats of texts, each as a Java pattern of the whole text.

Sources: RFC 5321 (addresses, without quoted parts and literals), RFC 1123 (host names), RFC 3986 (URIs, IP
addresses), RFC 9562 (UUIDs), RFC 3339 (date and time), RFC 4648 (base64). Every pattern is bounded in
length or repeats single characters only, because Java's regex recurses over repeated groups.
"""

from __future__ import annotations

from dq.dataquality.model.predicate import Compare, Matches, Not, Predicate, any_of
from dq.dataquality.model.term import Length, Path, Remainder

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_HEX = "[0-9A-Fa-f]{1,4}"
_LOW = f"(?:{_HEX}:{_HEX}|{_IPV4})"


def _ipv6() -> str:
    """RFC 3986, IPv6address: eight groups, or fewer around one `::`; the last two may be an IPv4 address."""

    def before(most: int) -> str:
        return f"(?:(?:{_HEX}:){{0,{most}}}{_HEX})?" if most else f"(?:{_HEX})?"

    forms = [f"(?:{_HEX}:){{6}}{_LOW}", f"::(?:{_HEX}:){{5}}{_LOW}"]
    forms += [f"{before(most)}::(?:{_HEX}:){{{4 - most}}}{_LOW}" for most in range(5)]
    forms += [f"{before(5)}::{_HEX}", f"{before(6)}::"]
    return f"(?:{'|'.join(forms)})"


_IN_USER = "[A-Za-z0-9._~!$&'()*+,;=:%-]"
_IN_NAME = "[A-Za-z0-9._~!$&'()*+,;=%-]"
_IN_PATH = "[A-Za-z0-9._~!$&'()*+,;=:%@/?-]"
_IN_BRACKETS = rf"\[(?:{_ipv6()}|v[0-9A-Fa-f]+\.{_IN_USER}+)\]"
_AUTHORITY = rf"//(?:{_IN_USER}*@)?(?:{_IN_BRACKETS}|{_IN_NAME}*)(?::[0-9]*)?(?=[/?#]|\z)"
_URI = (
    rf"(?!.*%(?![0-9A-Fa-f]{{2}}))[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|(?!//)){_IN_PATH}*(?:#{_IN_PATH}*)?"
)

_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
# A leap second is written as second 60.
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

PATTERNS: dict[str, str] = {
    "email": rf"(?=.{{3,254}}\z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?=.{{1,253}}\z){_HOST}",
    "uuid": "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "uri": _URI,
    "hostname": rf"(?=.{{1,253}}\z){_HOST}",
    "ipv4": _IPV4,
    "ipv6": _ipv6(),
    "date": _DAY,
    "date-time": f"{_DAY}[Tt]{_CLOCK}{_OFFSET}",
    # That they come in fours is counted: a repeated group would recurse.
    "byte": "[A-Za-z0-9+/]*+={0,2}",
}
# Formats whose number of characters is a multiple.
MULTIPLES = {"byte": 4}
# Formats that every text has.
ANY_TEXT = {
    "password": "it tells how to show a text; any text is a password",
    "binary": "it tells that the text stands for bytes; any text does",
}


def breaks(name: str, value: Path) -> Predicate:
    """A predicate: the value is a text without this format."""
    unlike = Not(Matches(value, rf"\A(?:{PATTERNS[name]})\z"))
    if name not in MULTIPLES:
        return unlike
    return any_of(unlike, Compare(Remainder(Length(value), MULTIPLES[name]), "<>", 0))
