"""Effect, level and mode of a change, and the verdict that follows from the three and nothing else."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Effect(StrEnum):
    """What a change does to the data that a contract admits.

    `weaken`: more data than before, so readers meet what they were promised not to. `strengthen`: less, so
    writers and old data fall out. `replace`: neither contains the other. `policy`: no matter of data.
    """

    NEUTRAL = "neutral"
    WEAKEN = "weaken"
    STRENGTHEN = "strengthen"
    REPLACE = "replace"
    POLICY = "policy"


class Level(StrEnum):
    """How much the change matters to whom it hits."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class Verdict(StrEnum):
    """What a change means in a mode, mildest first."""

    OK = "ok"
    WARN = "warn"
    BREAK = "break"

    @property
    def rank(self) -> int:
        """0 for ok to 2 for break, for comparing."""
        return list(Verdict).index(self)


class Bump(StrEnum):
    """The smallest change of the version that announces a change, smallest first."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    @property
    def rank(self) -> int:
        """0 for none to 3 for major, for comparing."""
        return list(Bump).index(self)


class Mode(StrEnum):
    """Whom a change may not break.

    FORWARD: consumers, whose old queries meet the new catalog and new data. BACKWARD: history and writers,
    whose old files and jobs meet the new contract. FULL: both. NONE: nobody, changes are only told.
    TRANSITIVE ones look at every earlier version of the same major, not only at the last.
    """

    FORWARD = "FORWARD"
    BACKWARD = "BACKWARD"
    FULL = "FULL"
    NONE = "NONE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def direct(self) -> Mode:
        """The mode for one pair of versions."""
        return Mode(self.value.removesuffix("_TRANSITIVE"))

    @property
    def transitive(self) -> bool:
        """Whether all earlier versions of the major count."""
        return self.value.endswith("_TRANSITIVE")


# Effect -> the modes that it hits. Policy hits in every mode, for it is not about data.
HITS: dict[Effect, frozenset[Mode]] = {
    Effect.NEUTRAL: frozenset(),
    Effect.WEAKEN: frozenset({Mode.FORWARD, Mode.FULL}),
    Effect.STRENGTHEN: frozenset({Mode.BACKWARD, Mode.FULL}),
    Effect.REPLACE: frozenset({Mode.FORWARD, Mode.BACKWARD, Mode.FULL}),
    Effect.POLICY: frozenset({Mode.FORWARD, Mode.BACKWARD, Mode.FULL, Mode.NONE}),
}
_VERDICT = {Level.INFO: Verdict.OK, Level.WARN: Verdict.WARN, Level.ERROR: Verdict.BREAK}


def verdict(effect: Effect, level: Level, mode: Mode) -> Verdict:
    """What a change means in a mode."""
    return _VERDICT[level] if mode.direct in HITS[effect] else Verdict.OK


class Judgement(NamedTuple):
    """What the table says of one change: a rule, what it does, and how much that matters.

    `bump` announces the change where it breaks nothing; `note` is what only this case can say, such as
    the engine that fails.
    """

    rule: str
    effect: Effect
    level: Level
    bump: Bump = Bump.MINOR
    note: str = ""
    engine: str = ""


def neutral(rule: str, bump: Bump = Bump.MINOR, note: str = "") -> Judgement:
    """A change that hurts nobody."""
    return Judgement(rule, Effect.NEUTRAL, Level.INFO, bump, note)


def weaken(rule: str, level: Level = Level.ERROR, note: str = "") -> Judgement:
    """A promise to consumers that is loosened."""
    return Judgement(rule, Effect.WEAKEN, level, note=note)


def strengthen(rule: str, level: Level = Level.ERROR, note: str = "") -> Judgement:
    """A promise that binds writers and history tighter."""
    return Judgement(rule, Effect.STRENGTHEN, level, note=note)


def replace(rule: str, level: Level = Level.ERROR, note: str = "") -> Judgement:
    """A promise that is exchanged for another."""
    return Judgement(rule, Effect.REPLACE, level, note=note)


def policy(rule: str, level: Level = Level.ERROR, bump: Bump = Bump.NONE, note: str = "") -> Judgement:
    """A fault in how the change is made, whatever the mode."""
    return Judgement(rule, Effect.POLICY, level, bump, note)


def required_bump(judgement: Judgement, mode: Mode) -> Bump:
    """The smallest bump that announces a change, above 1.0.

    Versions speak to consumers, so what breaks them is a major whatever the mode; what breaks those whom
    the mode protects is one as well.
    """
    if judgement.effect is Effect.POLICY:
        return judgement.bump
    hits = [verdict(judgement.effect, judgement.level, one) for one in (Mode.FORWARD, mode)]
    asked = Bump.MAJOR if Verdict.BREAK in hits else Bump.MINOR if Verdict.WARN in hits else Bump.NONE
    return max(judgement.bump, asked, key=lambda one: one.rank)
