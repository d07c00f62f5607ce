"""Text in programs: literals of Python, words of a shell, comments, and YAML that dbt renders with Jinja."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from dq.contracts.shared.errors import UsageError
from dq.contracts.yaml.writing import commented

# Where Jinja begins an expression, a statement or a comment.
_JINJA = re.compile(r"\{(?=[{%#])")
# Spark's substitution of variables, which also takes place inside of comments.
_VARIABLE = re.compile(r"\$(?=\{)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# dbt writes names between quotes of Jinja and of SQL, and escapes neither.
_NOT_FOR_DBT = re.compile(r"""['"`\\{}$]""")


def python(value: object) -> str:
    """Return a text, number or boolean as a Python literal in ASCII, with texts in double quotes."""
    if not isinstance(value, str):
        return ascii(value)
    escaped = value.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


def shell(words: Iterable[str]) -> str:
    """A line for a POSIX shell that runs the words as one command."""
    return shlex.join(words)


def shell_word(text: str) -> str:
    """One word of a line for a POSIX shell."""
    return shlex.quote(text)


def comment(text: str) -> str:
    """The text as one line of a comment, in which neither Jinja nor Spark finds anything to fill in."""
    return _VARIABLE.sub("$ ", jinja(commented(text)))


def jinja(text: str) -> str:
    """The text with a space inside of each `{{`, `{%` and `{#`, so that Jinja finds nothing to evaluate.

    An escape of Jinja's own holds for one rendering. dbt renders names, arguments of tests and descriptions
    once or twice, which differs by version.
    """
    return _JINJA.sub("{ ", text)


def is_plain_name(name: str) -> bool:
    """Whether SQL of all dialects takes the name without quotes, keywords aside."""
    return _PLAIN_NAME.fullmatch(name) is not None


def is_dbt_name(name: str, *, spaces: bool = False) -> bool:
    """Whether dbt writes the name where it belongs and evaluates no part of it.

    Names of sources and tables must not have spaces, those of columns may.
    """
    return name.isprintable() and not _NOT_FOR_DBT.search(name) and (spaces or " " not in name)


def dbt_name(name: str, *, spaces: bool = False) -> str:
    """The name for dbt, unchanged. Raises UsageError where it is no `is_dbt_name`."""
    if not is_dbt_name(name, spaces=spaces):
        raise UsageError(
            f"dbt takes no name such as {name!r}.", "Give it a physicalName of letters, digits and _."
        )
    return name


def is_dbt_value(text: str) -> bool:
    """Whether dbt's test `accepted_values` holds the text: it writes it between single quotes as it is."""
    return text.isprintable() and not set(text) & {"'", "\\"} and not _JINJA.search(text)
