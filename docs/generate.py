"""Writes docs/reference/ from the code: `make docs`. A test fails when a page is not what the code says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from dq.cli.main import application, names
from dq.contracts.extension import MODELS
from dq.dataquality.kind import built_in
from dq.validators import page
from dq.validators.lint import rules_of

HERE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the code. -->\n"


def commands() -> Iterator[str]:
    """The command line: every command with its text and options."""
    yield "# Commands\n"
    yield "Exit codes: **0** fine · **1** violations found · **2** usage or configuration ·"
    yield "**3** could not evaluate · **4** an alert could not be delivered · **70** a bug of dq.\n"
    root: Any = typer.main.get_command(application(names()))
    for name, command in sorted(root.commands.items()):
        inner = getattr(command, "commands", None)
        for sub, one in sorted(inner.items()) if inner else [("", command)]:
            yield from _command(f"dq {name} {sub}".rstrip(), one)


def _command(title: str, command: Any) -> Iterator[str]:
    yield f"## {title}\n"
    yield _prose(command.help or "")
    rows = [
        (", ".join(f"`{flag}`" for flag in (one.opts or [one.name])), " ".join((one.help or "").split()))
        for one in command.params
        if one.name != "help"
    ]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| {flags} | {text} |" for flags, text in rows)
        yield ""


def _prose(text: str) -> str:
    """The help text with its example as a code block."""
    before, found, example = text.partition("Example: ")
    body = before.strip() + "\n"
    return body + (f"\n```sh not-run\n{example.strip()}\n```\n" if found else "")


def rules() -> Iterator[str]:
    """The gate's rules with their pages."""
    yield "# Rules of the gate\n"
    yield "Set a rule's severity, or turn it off, in the registry's `dq-policy.yaml`.\n"
    shelf = rules_of()
    yield "| rule | severity | what it finds |\n|---|---|---|"
    for rule in shelf.values():
        yield f"| [{rule.id}](#{rule.id}) | {rule.severity} | {page.parse(rule.page).summary} |"
    yield ""
    for rule in shelf.values():
        made = page.parse(rule.page)
        yield f"## {rule.id}\n\n{made.summary}\n\n{made.why}\n"
        yield f"Bad:\n\n```yaml\n{made.bad.rstrip()}\n```\n"
        yield f"Good:\n\n```yaml\n{made.good.rstrip()}\n```\n"
        yield f"{made.mend}\n"


def checks() -> Iterator[str]:
    """The check kinds with their pages."""
    yield "# Checks of the data\n"
    for kind in built_in().values():
        yield f"## {kind.id}\n\n{_sections(kind.page)}\n"


_HEADING = re.compile(r"(Why|Bad|Good|Nulls|Mend):(.*)")


def _sections(text: str) -> str:
    """A page of a check: prose stays, indented YAML becomes a code block."""
    lines: list[str] = []
    inside = False
    for line in text.strip().splitlines():
        indented = line.startswith("    ")
        if indented and not inside:
            lines += ["", "```yaml"]
        if inside and not indented and line.strip():
            lines += ["```", ""]
        inside = indented or (inside and not line.strip())
        heading = _HEADING.match(line)
        if heading:
            lines += ["", f"**{heading[1]}.**{heading[2]}"]
        else:
            lines.append(line[4:] if indented else line)
    if inside:
        lines.append("```")
    return "\n".join(lines)


def extension() -> Iterator[str]:
    """The values of dq's custom properties."""
    yield "# What dq adds to ODCS\n"
    yield "One custom property per place; on ODCS 3.2 it says `vendor: dq`."
    yield "`dq schema` prints the JSON Schema.\n"
    where = {
        "delivery": "an SLA entry (ODCS 3.0 and 3.1: the contract, as `delivery:<sla id>`)",
        "dataset": "an object",
        "scope": "a quality rule",
        "route": "a support channel",
    }
    for name, model in MODELS.items():
        yield f"## {name}\n\nOn {where[name]}.\n"
        yield "| key | default | |\n|---|---|---|"
        for info in model.model_fields.values():
            if info.description:
                yield f"| `{info.alias}` | `{info.default}` | {info.description} |"
        yield ""


PAGES = {"commands": commands, "rules": rules, "checks": checks, "extension": extension}


def pages() -> dict[Path, str]:
    """Every page with its text."""
    return {HERE / f"{name}.md": NOTE + "\n" + "\n".join(made()) for name, made in PAGES.items()}


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
    sys.stdout.write(f"wrote {len(PAGES)} pages\n")
