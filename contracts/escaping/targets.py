"""TABLE: the languages in which dq writes text of strangers, and the one function that writes it in each.

A row is tested with the program that evaluates the language (tests/contracts/test_escaping.py). What no
stranger chooses, such as markup of dq's own, goes through none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dq.contracts.escaping import code, lines, markdown, markup, spark_sql
from dq.contracts.shared import printable
from dq.contracts.sql import text as sql
from dq.contracts.yaml import writing


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
    return lines.slack(text, 3_000)


TARGETS: dict[str, EscapingTarget] = {
    "comment": EscapingTarget(code.comment, "dbt, Spark, Python", "heads of exported files"),
    "dbt text": EscapingTarget(code.jinja, "dbt: Jinja in YAML", "dq export dbt"),
    "dbt name": EscapingTarget(code.dbt_name, "dbt: Jinja and SQL", "dq export dbt", refuses=True),
    "github message": EscapingTarget(lines.github_data, "GitHub's runner", "reports of dq validate"),
    "github property": EscapingTarget(lines.github_property, "GitHub's runner", "reports of dq validate"),
    "html": EscapingTarget(markup.html, "browsers, mail programs", "dq export html, mail, notebooks"),
    "json": EscapingTarget(
        printable.in_json, "JSON readers, and runners in their logs", "every --format json"
    ),
    "lines": EscapingTarget(printable.block, "terminals", "everything printed"),
    "markdown": EscapingTarget(markdown.escaped, "GitHub, GitLab", "reports, comments on pull requests"),
    "markdown code": EscapingTarget(markdown.code, "GitHub, GitLab", "reports, comments on pull requests"),
    "one line": EscapingTarget(printable.one_line, "terminals", "everything printed"),
    "prometheus label": EscapingTarget(lines.prometheus_label, "Prometheus", "dq metrics"),
    "python": EscapingTarget(code.python, "Python", "dq export pandera, the portal's lines to copy"),
    "runner": EscapingTarget(printable.inert, "runners of CI", "everything printed"),
    "shell word": EscapingTarget(code.shell_word, "POSIX shells", "commands in messages and findings"),
    "slack": EscapingTarget(_slack, "Slack: mrkdwn", "incidents and digests"),
    "spark sql literal": EscapingTarget(
        spark_sql.literal, "Spark SQL: statements", "dq export sql, Hive catalogs"
    ),
    "spark sql name": EscapingTarget(sql.name, "Spark SQL", "checks and catalogs"),
    "spark sql name in a file": EscapingTarget(
        spark_sql.name_in_file, "the shell of Spark SQL", "dq export sql", refuses=True
    ),
    "spark sql text": EscapingTarget(sql.text, "Spark SQL: expressions", "checks"),
    "xml": EscapingTarget(markup.xml, "XML readers", "JUnit reports, feeds of the portal"),
    "xml attribute": EscapingTarget(markup.xml_attribute, "XML readers", "JUnit reports"),
    "yaml": EscapingTarget(writing.quoted, "YAML readers", "dq import, init, propose, export odcs and dbt"),
}
"""By name. Row filters are expressions, not texts: `row_filter` writes them from their tree."""
