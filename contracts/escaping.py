"""Text of strangers in the languages of other programs: one escaping function per target."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

from dq.contracts import outcome
from dq.contracts.outcome import UsageError, block, inert, one_line
from dq.contracts.sql import text as sql
from dq.contracts.sql.text import name
from dq.contracts.yaml import insertion
from dq.contracts.yaml.insertion import commented

# Text in HTML and XML: element content and double-quoted attributes.


def html(text: str) -> str:
    """The text in HTML; both kinds of quotes are escaped."""
    return escape(text)


def xml(text: str) -> str:
    """The text between tags of XML 1.0."""
    return outcome.in_xml(escape(text, quote=False))


def xml_attribute(text: str) -> str:
    """The text in an attribute of XML 1.0, where a parser would make a blank of what breaks a line."""
    return outcome.in_xml(escape(text)).replace("\n", "&#10;").replace("\t", "&#9;")


# Text in lines that services read: Slack's mrkdwn, workflow commands of GitHub, samples of Prometheus.

_SLACK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# "%" comes first, so that it does not escape what the others wrote.
_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY = (*_DATA, (":", "%3A"), (",", "%2C"))


def slack(text: str, width: int) -> str:
    """The text so that Slack sees no link, mention or entity in it, cut to `width` characters on the wire."""
    kept: list[str] = []
    for character in text:
        wire = _SLACK.get(character, character)
        width -= len(wire)
        if width < 1:
            return "".join(kept) + "…"
        kept.append(wire)
    return "".join(kept)


def github_data(text: str) -> str:
    """The message of a workflow command."""
    return _github(text, _DATA)


def github_property(text: str) -> str:
    """The value of a property of a workflow command."""
    return _github(text, _PROPERTY)


def _github(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for character, code in table:
        text = text.replace(character, code)
    # What is left of the characters that steer cannot be sent in any other way.
    return inert(block(text))


def prometheus_label(value: str) -> str:
    """The value of a label in Prometheus' text format, without its quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


# Text in Markdown, as GitHub, GitLab and notebooks render it.

_SPECIAL = re.compile(r"([\\*_{}\[\]~$])")
# What no escape of Markdown's reaches, because it is looked for in the text that was rendered: names that
# would be notified, addresses, numbers of issues, hashes of commits, and the names of emoji.
_LIVE = re.compile(
    r"@|://|www\.|(?:mailto|xmpp):|[#!~%&$^](?=\w)|\bgh-\d|:[\w+-]+:|(?<!\w)[0-9a-f]{7,40}(?!\w)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s`|]+|[`|]")
# Renderers read a backslash before "|" in two ways, by what stands before it; an entity is read in one.
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("`", "&#96;"))


def markdown_text(text: str) -> str:
    """Escape a text for one line of Markdown, so that it makes no markup, link or mention.

    A word that would come to life all the same stands as code.
    """
    return _WORD.sub(_word, " ".join(one_line(text).split()))


def _word(match: re.Match[str]) -> str:
    word = match[0]
    if _LIVE.search(word):
        return _span(word)
    for sign, entity in _ENTITIES:
        word = word.replace(sign, entity)
    return _SPECIAL.sub(r"\\\1", word)


def markdown_code(text: str) -> str:
    """Text as code inside a table's cell; where code cannot hold it there, as text."""
    flat = " ".join(one_line(text).split())
    return markdown_text(text) if not flat or "`" in flat or "|" in flat else _span(flat)


def _span(text: str) -> str:
    return f"`{inert(text)}`"


# Text in Spark SQL: names and literals of statements, run by dq or written into a file.

# The spark-sql shell looks for the end of a statement, quotes and comments inside of back-quoted names, and
# Spark fills in `${…}` there.
_NOT_IN_FILES = re.compile(r"""[;'"\\]|--|/\*|\*/|\$\{""")


def spark_literal(text: str) -> str:
    """A literal for places that take no expression, such as COMMENT and LOCATION.

    `$` is escaped too, because Spark fills in `${env:…}` before it parses.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def spark_name_in_file(identifier: str) -> str:
    """A name for a file of statements, in back quotes.

    Raises:
        UsageError: back quotes do not keep the shell or Spark from evaluating a part of it.
    """
    if not identifier.isprintable() or _NOT_IN_FILES.search(identifier):
        raise UsageError(
            f"a file of SQL takes no name such as {identifier!r}.",
            "Give it a physicalName of letters, digits and _.",
        )
    return name(identifier)


# Text in programs: literals of Python, words of a shell, comments, and YAML that dbt renders with Jinja.

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


# TABLE: the languages in which dq writes text of strangers, and the one function that writes it in each.
#
# A row is tested with the program that evaluates the language (tests/contracts/test_escaping.py). What no
# stranger chooses, such as markup of dq's own, goes through none of them.


@dataclass(frozen=True, slots=True)
class EscapingTarget:
    """A language and the function for text in it.

    `used_by` says where dq writes it. A target that `refuses` raises UsageError for what it cannot hold.
    """

    write: Callable[[str], str]
    evaluated_by: str
    used_by: str
    refuses: bool = False


def _slack(text: str) -> str:
    return slack(text, 3_000)


TARGETS: dict[str, EscapingTarget] = {
    "comment": EscapingTarget(comment, "dbt, Spark, Python", "heads of exported files"),
    "dbt text": EscapingTarget(jinja, "dbt: Jinja in YAML", "dq export dbt"),
    "dbt name": EscapingTarget(dbt_name, "dbt: Jinja and SQL", "dq export dbt", refuses=True),
    "github message": EscapingTarget(github_data, "GitHub's runner", "reports of dq validate"),
    "github property": EscapingTarget(github_property, "GitHub's runner", "reports of dq validate"),
    "html": EscapingTarget(html, "browsers, mail programs", "dq export html, mail, notebooks"),
    "json": EscapingTarget(outcome.in_json, "JSON readers, and runners in their logs", "every --format json"),
    "lines": EscapingTarget(outcome.block, "terminals", "everything printed"),
    "markdown": EscapingTarget(markdown_text, "GitHub, GitLab", "reports, comments on pull requests"),
    "markdown code": EscapingTarget(markdown_code, "GitHub, GitLab", "reports, comments on pull requests"),
    "one line": EscapingTarget(outcome.one_line, "terminals", "everything printed"),
    "prometheus label": EscapingTarget(prometheus_label, "Prometheus", "dq metrics"),
    "python": EscapingTarget(python, "Python", "dq export pandera, the portal's lines to copy"),
    "runner": EscapingTarget(outcome.inert, "runners of CI", "everything printed"),
    "shell word": EscapingTarget(shell_word, "POSIX shells", "commands in messages and findings"),
    "slack": EscapingTarget(_slack, "Slack: mrkdwn", "incidents and digests"),
    "spark sql literal": EscapingTarget(
        spark_literal, "Spark SQL: statements", "dq export sql, Hive catalogs"
    ),
    "spark sql name": EscapingTarget(sql.name, "Spark SQL", "checks and catalogs"),
    "spark sql name in a file": EscapingTarget(
        spark_name_in_file, "the shell of Spark SQL", "dq export sql", refuses=True
    ),
    "spark sql text": EscapingTarget(sql.text, "Spark SQL: expressions", "checks"),
    "xml": EscapingTarget(xml, "XML readers", "JUnit reports, feeds of the portal"),
    "xml attribute": EscapingTarget(xml_attribute, "XML readers", "JUnit reports"),
    "yaml": EscapingTarget(insertion.quoted, "YAML readers", "dq import, init, propose, export odcs and dbt"),
}
"""By name. Row filters are expressions, not texts: `row_filter` writes them from their tree."""
