"""Whether the version announces what changed: semantic versioning, as contracts use it."""

from __future__ import annotations

import re
from typing import NamedTuple

from dq.validators.compat.judgement.words import Bump, Judgement, Level, neutral, policy

_SEMVER = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


class Version(NamedTuple):
    """The numbers of a version; what follows them does not count."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def read_version(text: str) -> Version | None:
    """The version that a text means, or None where it is no semantic version. A leading v is fine."""
    match = _SEMVER.fullmatch(text.strip())
    return Version(int(match[1]), int(match[2]), int(match[3])) if match else None


def needed(version: Version, asked: Bump) -> Bump:
    """The bump that announces a change of this weight: below 1.0 the minor carries breaks."""
    below = {Bump.MAJOR: Bump.MINOR, Bump.MINOR: Bump.PATCH}
    return below.get(asked, asked) if version.major == 0 else asked


def following(version: Version, bump: Bump) -> Version:
    """The next version after a bump."""
    steps = {
        Bump.MAJOR: Version(version.major + 1, 0, 0),
        Bump.MINOR: Version(version.major, version.minor + 1, 0),
        Bump.PATCH: Version(version.major, version.minor, version.patch + 1),
    }
    return steps.get(bump, version)


def judge_version(before: str, after: str, asked: Bump) -> Judgement | None:
    """What the step between two versions means, when the changes ask for a bump; None when all is still."""
    if before == after and asked is Bump.NONE:
        return None
    second = read_version(after)
    if second is None:
        return policy("version-not-semver")
    first = read_version(before)
    if first is None:
        return neutral("version-bump-ok", Bump.NONE, f"{before!r} was no semantic version.")
    wanted = needed(first, asked)
    least = following(first, wanted)
    if second < first:
        return policy("version-decreased")
    if second == first and wanted is not Bump.NONE:
        # Prose and other metadata change no promise, so a missing patch hurts nobody.
        level = Level.WARN if asked is Bump.PATCH else Level.ERROR
        return policy("version-not-bumped", level, wanted, f"At least {least} is needed.")
    if second < least:
        return policy("version-bump-too-small", bump=wanted, note=f"At least {least} is needed.")
    return neutral("version-bump-ok", wanted)


def required_version(before: str, asked: Bump) -> str | None:
    """The smallest version that announces the changes, or None where the old one is no version."""
    first = read_version(before)
    return None if first is None else str(following(first, needed(first, asked)))
