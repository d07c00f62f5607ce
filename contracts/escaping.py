"""Escaping of untrusted text: one function per target language."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

from dq.contracts import outcome
from dq.contracts.outcome import UsageError, escape_block, escape_ci_commands, one_line
from dq.contracts.sql import text as sql
from dq.contracts.sql.text import name
from dq.contracts.yaml import portable
from dq.contracts.yaml.portable import commented

# Text in HTML and XML: element content and double-quoted attributes.


def html(text: str) -> str:
    """Escape text for HTML, including both kinds of quotes."""
    return escape(text)


def xml(text: str) -> str:
    """Escape text between tags of XML 1.0."""
    return outcome.escape_xml_text(escape(text, quote=False))


def xml_attribute(text: str) -> str:
    """Escape text in an attribute of XML 1.0, where a parser would replace line breaks with blanks."""
    return outcome.escape_xml_text(escape(text)).replace("\n", "&#10;").replace("\t", "&#9;")


# Text in lines that services read: Slack's mrkdwn, workflow commands of GitHub, samples of Prometheus.

_SLACK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# "%" comes first, so that it does not escape the other replacements.
_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY = (*_DATA, (":", "%3A"), (",", "%2C"))


def slack(text: str, width: int) -> str:
    """Escape links, mentions and entities for Slack, and cut to `width` escaped characters."""
    escaped: list[str] = []
    for character in text:
        wire = _SLACK.get(character, character)
        width -= len(wire)
        if width < 1:
            return "".join(escaped) + "…"
        escaped.append(wire)
    return "".join(escaped)


def github_data(text: str) -> str:
    """Escape the message of a workflow command."""
    return _github(text, _DATA)


def github_property(text: str) -> str:
    """Escape the value of a property of a workflow command."""
    return _github(text, _PROPERTY)


def _github(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for character, code in table:
        text = text.replace(character, code)
    # Other control characters have no escape in workflow commands.
    return escape_ci_commands(escape_block(text))


def prometheus_label(value: str) -> str:
    """Escape the value of a label in Prometheus' text format, without its quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


# Text in Markdown, as GitHub, GitLab and notebooks render it.

_SPECIAL = re.compile(r"([\\*_{}\[\]~$])")
# Markdown cannot escape these, because they are searched in the rendered text: mentions, URLs and addresses,
# issue numbers, commit hashes, and emoji names.
_LIVE = re.compile(
    r"@|://|www\.|(?:mailto|xmpp):|[#!~%&$^](?=\w)|\bgh-\d|:[\w+-]+:|(?<!\w)[0-9a-f]{7,40}(?!\w)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s`|]+|[`|]")
# Renderers interpret a backslash before "|" differently depending on the context; an entity is unambiguous.
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("`", "&#96;"))


def markdown_text(text: str) -> str:
    """Escape a text for one line of Markdown, so that it makes no markup, link or mention.

    A word that would still be rendered as one becomes code.
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
    """Return text as code in a table cell, or as escaped text if code cannot contain it."""
    flat = " ".join(one_line(text).split())
    return markdown_text(text) if not flat or "`" in flat or "|" in flat else _span(flat)


def _span(text: str) -> str:
    return f"`{escape_ci_commands(text)}`"


# Paths in CODEOWNERS of GitHub and GitLab.

_LITERAL_PATH = re.compile(r"[\w@+=,./-]+( +[\w@+=,./-]+)*")


def codeowners_pattern(path: str) -> str:
    """Return the pattern of CODEOWNERS for this path from the repository's top.

    Raises UsageError for a path with characters of patterns or comments.
    """
    if not _LITERAL_PATH.fullmatch(path) or not {"", ".", ".."}.isdisjoint(path.removesuffix("/").split("/")):
        hint = "Rename it: use letters, digits, spaces and ._/@+=,- in its name."
        raise UsageError(f"CODEOWNERS cannot name {one_line(path)}.", hint)
    return f"/{path}".replace(" ", "\\ ")


# Text in Spark SQL: names and literals of statements, run by dq or written into a file.

# The spark-sql shell interprets statement ends, quotes and comments in back-quoted names, and Spark replaces
# `${…}` there.
_NOT_IN_FILES = re.compile(r"""[;'"\\]|--|/\*|\*/|\$\{""")


def spark_literal(text: str) -> str:
    """Return a literal for clauses that take no expression, such as COMMENT and LOCATION.

    `$` is escaped too, because Spark replaces `${env:…}` before it parses.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def spark_name_in_file(identifier: str) -> str:
    """Return a name for a file of statements, in back quotes.

    Raises:
        UsageError: back quotes do not keep the shell or Spark from evaluating a part of it.
    """
    if not identifier.isprintable() or _NOT_IN_FILES.search(identifier):
        raise UsageError(
            f"{identifier!r} cannot be used as a name in a SQL file.",
            "Give it a physicalName of letters, digits and _.",
        )
    return name(identifier)


# Text in programs: literals of Python, words of a shell, comments, and YAML that dbt renders with Jinja.

# Where Jinja begins an expression, a statement or a comment.
_JINJA = re.compile(r"\{(?=[{%#])")
# Spark's variable substitution, which also applies in comments.
_VARIABLE = re.compile(r"\$(?=\{)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# dbt writes names between quotes of Jinja and of SQL without escaping.
_NOT_FOR_DBT = re.compile(r"""['"`\\{}$]""")


def python(value: object) -> str:
    """Return a text, number or boolean as a Python literal in ASCII, with texts in double quotes."""
    if not isinstance(value, str):
        return ascii(value)
    escaped = value.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


def shell(words: Iterable[str]) -> str:
    """Return a command line for a POSIX shell."""
    return shlex.join(words)


def shell_word(text: str) -> str:
    """Return one quoted word of a command line for a POSIX shell."""
    return shlex.quote(text)


def comment(text: str) -> str:
    """Return the text as one line of a comment that contains nothing for Jinja or Spark to replace."""
    return _VARIABLE.sub("$ ", jinja(commented(text)))


def jinja(text: str) -> str:
    """Return the text with a space in each `{{`, `{%` and `{#`, so that Jinja finds nothing to evaluate.

    Jinja's own escapes work for one rendering only. dbt renders names, arguments of tests and descriptions
    once or twice, depending on the version.
    """
    return _JINJA.sub("{ ", text)


def is_plain_name(name: str) -> bool:
    """Return True if all SQL dialects accept the name without quotes, ignoring keywords."""
    return _PLAIN_NAME.fullmatch(name) is not None


def is_dbt_name(name: str, *, spaces: bool = False) -> bool:
    """Return True if dbt uses the name unchanged and evaluates no part of it.

    Names of sources and tables must not have spaces, those of columns may.
    """
    return name.isprintable() and not _NOT_FOR_DBT.search(name) and (spaces or " " not in name)


def dbt_name(name: str, *, spaces: bool = False) -> str:
    """Return the name for dbt, unchanged. Raises UsageError unless `is_dbt_name`."""
    if not is_dbt_name(name, spaces=spaces):
        raise UsageError(
            f"{name!r} cannot be used as a name in dbt.", "Give it a physicalName of letters, digits and _."
        )
    return name


def is_dbt_value(text: str) -> bool:
    """Return True if dbt's test `accepted_values` supports the text, which it puts in single quotes
    unescaped.
    """
    return text.isprintable() and not set(text) & {"'", "\\"} and not _JINJA.search(text)


# TABLE: target languages for untrusted text, and the escaping function of each.
#
# Each row is tested with the program that evaluates the language (tests/contracts/test_escaping.py). Trusted
# text, such as dq's own markup, is not escaped.


@dataclass(frozen=True, slots=True)
class EscapingTarget:
    """A target language and its escaping function.

    `used_by` says where dq uses it. If `refuses` is True, the function raises UsageError for unsupported
    text.
    """

    escape: Callable[[str], str]
    evaluated_by: str
    used_by: str
    refuses: bool = False


def _slack(text: str) -> str:
    return slack(text, 3_000)


TARGETS: dict[str, EscapingTarget] = {
    "comment": EscapingTarget(comment, "dbt, Spark, Python", "heads of exported files"),
    "codeowners": EscapingTarget(
        codeowners_pattern, "GitHub, GitLab: patterns", "dq codeowners", refuses=True
    ),
    "dbt text": EscapingTarget(jinja, "dbt: Jinja in YAML", "dq export dbt"),
    "dbt name": EscapingTarget(dbt_name, "dbt: Jinja and SQL", "dq export dbt", refuses=True),
    "github message": EscapingTarget(github_data, "GitHub's runner", "reports of dq validate"),
    "github property": EscapingTarget(github_property, "GitHub's runner", "reports of dq validate"),
    "html": EscapingTarget(html, "browsers, mail programs", "dq export html, mail, notebooks"),
    "json": EscapingTarget(
        outcome.escape_json_document, "JSON readers, and runners in their logs", "every --format json"
    ),
    "lines": EscapingTarget(outcome.escape_block, "terminals", "everything printed"),
    "markdown": EscapingTarget(markdown_text, "GitHub, GitLab", "reports, comments on pull requests"),
    "markdown code": EscapingTarget(markdown_code, "GitHub, GitLab", "reports, comments on pull requests"),
    "one line": EscapingTarget(outcome.one_line, "terminals", "everything printed"),
    "prometheus label": EscapingTarget(prometheus_label, "Prometheus", "dq metrics"),
    "python": EscapingTarget(python, "Python", "dq export pandera, the portal's lines to copy"),
    "runner": EscapingTarget(outcome.escape_ci_commands, "runners of CI", "everything printed"),
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
    "yaml": EscapingTarget(portable.quoted, "YAML readers", "dq import, init, propose, export odcs and dbt"),
}
"""By name. Row filters are expressions, not texts: they are generated from their syntax tree."""
