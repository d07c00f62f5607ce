"""What contracts may name: the operator's lake roots, hosts and variables.

A contract is written by whoever proposes one. Its place is compared with the roots after everything in it is
filled in and every link is followed; its variables are the listed ones. Without settings that is narrow:
local files in the registry's folder and the working folder, no variable, no host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from dq.contracts.access.address import (
    HOSTED,
    Address,
    alternatives,
    fixed,
    has_pattern,
    is_remote,
    is_uri,
    parse,
)
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.fault import TextFault

# So many entries of a folder are looked through for links; more is no folder of a registry.
_MOST_ENTRIES = 200_000


class PlaceTerms(Protocol):
    """What stands for the variables of a place, and which places are allowed."""

    def value(self, name: str, default: str | None, /) -> str | TextFault: ...

    def vouch(self, text: str) -> str | TextFault: ...


@dataclass(frozen=True, slots=True)
class Reach:
    """What contracts may name.

    `folder` is that of relative paths. Local data lies in one of `folders`, other data below one of `roots`
    or on one of `hosts`. `narrow`: nobody chose the folders, so that what is hidden in them is not data.
    `variables` are the listed ones that are set; `withheld` names what else is set. `unseen`: the disk is not
    asked, so that every local place passes; none of them may be opened.
    """

    folder: Path
    folders: tuple[Path, ...]
    roots: tuple[Address, ...] = ()
    hosts: tuple[str, ...] = ()
    narrow: bool = False
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    withheld: frozenset[str] = field(default=frozenset(), repr=False)
    unseen: bool = False

    def value(self, name: str, default: str | None) -> str | TextFault:
        """What stands for `${name:-default}`; never the value of a variable that is not listed.

        A variable that is set and not listed is a fault also where there is a default: with it, another
        place than the one that was meant would be looked at.
        """
        if name in self.withheld:
            return TextFault(
                "VARIABLE_WITHHELD",
                f"names the variable {name}, which is set, and which contracts may not name",
                f"Allow it: DQ_VARS={name}, or vars in dq.toml. Or unset it, for the default to hold.",
            )
        # As in a shell, `:-` also stands in for a variable that is set and empty.
        value = self.variables.get(name) or default
        if value is None:
            return TextFault(
                "VARIABLE_UNSET",
                f"needs the variable {name}, which is not set",
                f"Set it and allow it (DQ_VARS={name} {name}=… dq …), or write ${{{name}:-default}}.",
            )
        return value

    def vouch(self, text: str) -> str | TextFault:
        """The place, fit for every reader: a local path or a URI; else why it may not be used."""
        address = parse(text)
        if isinstance(address, TextFault):
            return address
        if address.scheme:
            return self._remote(text, address)
        return (None if self.unseen else self._outside(address)) or str(address)

    def above(self, place: str, mounts: Collection[str] = ()) -> str:
        """The nearest folder or mount above a local place by its letters alone, else its parent."""
        path = Path(os.path.normpath(self.folder / place.removeprefix("file://")))
        known = {*map(str, self.folders), *mounts}
        above = (str(one) for one in (path, *path.parents))
        return next((one for one in above if one in known), str(path.parent))

    def _remote(self, text: str, address: Address) -> str | TextFault:
        # The container before it is the account's own matter.
        host = address.host.rpartition("@")[2]
        hosted = address.scheme in HOSTED and any(fnmatchcase(host, known.lower()) for known in self.hosts)
        if hosted or any(address.below(root) for root in self.roots):
            scheme, colon, rest = text.partition(":")
            return scheme.lower() + colon + rest.rstrip("/")
        known = ", ".join(map(str, self.roots))
        said = (
            f"lies below none of the lake roots {known}" if known else "is not local, and no lake root is set"
        )
        return TextFault("OUT_OF_REACH", said, _allow(f"{address.scheme}://{address.host}"))

    def _outside(self, address: Address) -> TextFault | None:
        """Why a local path may not be used: read by its letters, as Hadoop does, and by its links."""
        known = fixed(address.segments)
        written = self.folder.joinpath(*known)
        for path in (os.path.normpath(written), written):
            wrong = self._refused(os.path.realpath(path), str(address))
            if wrong is not None:
                return wrong
        rest = address.segments[len(known) :]
        if self.narrow and any(step.startswith(".") or "[" in step for step in rest):
            return _hidden()
        return None

    def _refused(self, real: str, said: str) -> TextFault | None:
        # Texts and no paths: a watcher asks this for every file that it looks at.
        inside = [rest for folder in self.folders if (rest := _below(real, str(folder))) is not None]
        if inside and not self.narrow:
            return None
        if any(not any(step.startswith(".") for step in Path(rest).parts) for rest in inside):
            return None
        if inside:
            return _hidden()
        where = "outside of the registry and the working folder" if self.narrow else "below no lake root"
        return TextFault("OUT_OF_REACH", f"lies {where}, or a link leads there", _allow(said))

    def leads_out(self, path: str) -> TextFault | None:
        """Why a folder or file below a vouched place may not be used: a link on the way to it."""
        if is_remote(path):
            return None
        return self._refused(os.path.realpath(self.folder / path), path)

    def contents(self, text: str) -> TextFault | None:
        """Why what a local place holds may not be read: a link in it that leads out.

        Asked for what Spark will read, and only where nobody chose the folders: a checkout may hold links.
        """
        address = parse(text)
        if not self.narrow or isinstance(address, TextFault) or address.scheme:
            return None
        places = [self.folder / text]
        if any(map(has_pattern, address.segments)):
            spelt = alternatives(str(address)) or []
            places = [path for one in spelt for path in _matching(self.folder, one)]
        for seen, path in enumerate(link for place in places for link in _links(place)):
            if seen > _MOST_ENTRIES:
                return TextFault("OUT_OF_REACH", "holds too many files to look through", _allow(text))
            if path is not None:
                wrong = self._refused(os.path.realpath(path), text)
                if wrong is not None:
                    return wrong
        return None


def _hidden() -> TextFault:
    mend = "Allow its folder: DQ_LAKE_ROOTS=…, or lake_roots in dq.toml."
    return TextFault("OUT_OF_REACH", "is hidden, or a link leads to what is", mend)


def _links(place: Path) -> Iterator[Path | None]:
    """The place itself and every link in it; None for what is no link."""
    yield place
    for folder, names, files in os.walk(place):
        for name in (*names, *files):
            path = Path(folder, name)
            yield path if path.is_symlink() else None


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    """What a pattern of Hadoop matches, and what is hidden, which it matches too."""
    whole = folder / re.sub(r"\*+", "*", pattern)
    return Path(whole.anchor).glob(str(whole.relative_to(whole.anchor)))


def _allow(root: str) -> str:
    return f"Allow it: DQ_LAKE_ROOTS={root}, or lake_roots in dq.toml."


def _below(real: str, folder: str) -> str | None:
    """What follows the folder in a real path; None where it does not lie in it."""
    if real == folder:
        return ""
    start = folder.rstrip(os.sep) + os.sep
    return real[len(start) :] if real.startswith(start) else None


def reach(
    folder: Path,
    roots: Sequence[str] | None = None,
    *,
    registries: Sequence[Path] = (),
    hosts: Sequence[str] = (),
    names: Collection[str] = (),
    environment: Mapping[str, str] | None = None,
    resolve: Callable[[Sequence[Path]], Sequence[str]] = lambda paths: [*map(os.path.realpath, paths)],
) -> Reach:
    """The reach of contracts when `folder` is the working folder.

    `roots` are folders and URI prefixes. Without them they are `folder` and the `registries`, but never the
    root of the file system. `names` are the variables of `environment` that may be named. `resolve` follows
    the links in these folders. Raises UsageError for a root that is no place.
    """
    given = environment or {}
    chosen = [Address("", "", (str(one),)) for one in (folder, *registries)]
    if roots is not None:
        chosen = [_root(one) for one in roots]
    local = [Path(one) for one in resolve([folder / str(one) for one in chosen if not one.scheme])]
    return Reach(
        folder,
        tuple(one for one in dict.fromkeys(local) if roots is not None or one != Path(one.anchor)),
        tuple(one for one in chosen if one.scheme),
        tuple(hosts),
        roots is None,
        {name: given[name] for name in names if name in given},
        frozenset(name for name, value in given.items() if value and name not in names),
    )


def _root(text: str) -> Address:
    if not is_uri(text):
        return Address("", "", (text,))
    made = parse(text)
    if isinstance(made, TextFault) or any(map(has_pattern, made.segments)):
        said = made.message if isinstance(made, TextFault) else "is a pattern"
        raise UsageError(f"the lake root {text!r} {said}.", "Write it like s3://bucket/prefix or /data.")
    return made
