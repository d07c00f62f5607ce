"""How pages are called: names that every file system and web server takes, another one for each product."""

from __future__ import annotations

import re
from hashlib import sha256

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_@.-]{0,79}(?<!\.)")
_ODD = re.compile(r"[^a-z0-9_-]+")
# Windows opens devices by these names, whatever stands behind a dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
# Beside the list of all domains, `index`.
_NONE = "none-"
_TAIL = re.compile(r"-[0-9a-f]{8}")


def slug(name: str) -> str:
    """The name of a page or folder for a product, domain or word.

    Names in lower case of few signs stay as they are; of all others their signs are replaced, and a hash
    keeps two of them apart, also where case does not count.
    """
    if _PLAIN.fullmatch(name) and not _DEVICES.fullmatch(name) and not _TAIL.search(name[-9:]):
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_ODD.sub('-', name.lower())[:60].strip('-_') or 'x'}-{mark}"


def domain_page(name: str) -> str:
    """The path of a domain's page; the empty name is that of products without one."""
    # These two pages are there already.
    taken = name in ("index", _NONE)
    return f"domains/{(slug(f'domain {name}') if taken else slug(name)) if name else _NONE}.html"
