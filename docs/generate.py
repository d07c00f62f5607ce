"""Writes docs/reference/ from the code: `make docs`. A test fails when a page is not what the code says."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from _clauses import clauses
from _privileges import privileges
from _python import python

from dq.alerts import channels
from dq.alerts.channels.webhook import IDEMPOTENCY, SCHEMA, SIGNATURE
from dq.cli.main import application, names
from dq.contracts.extension import MODELS
from dq.contracts.odcs import SUPPORTED
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import State, accounts
from dq.dataquality.clauses.kind import clauses_of
from dq.operations.metrics import BUCKETS
from dq.operations.metrics import TABLE as METRICS
from dq.operations.runtime.settings import TABLE
from dq.validators import rule_page
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
    yield "A severity in brackets is that of a wish of ours: the rule is off until a policy names it, or is"
    yield "`profile: strict`. Warnings are about what the standard allows.\n"
    yield "| rule | severity | what it finds |\n|---|---|---|"
    for rule in shelf.values():
        severity = f"({rule.severity})" if rule.wish else rule.severity
        yield f"| [{rule.id}](#{rule.id}) | {severity} | {rule_page.parse(rule.page).summary} |"
    yield ""
    for rule in shelf.values():
        made = rule_page.parse(rule.page)
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
        "csv": "a server",
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


def settings() -> Iterator[str]:
    """The operator's settings: one row each."""
    yield "# Settings\n"
    yield "What whoever runs dq decides; [how to](../how-to/settings.md) says more. They stand in a `dq.toml`"
    yield "that `DQ_CONFIG` or `dq --config` names, or in variables, which win. In a variable, the items of a"
    yield "list are separated by commas.\n"
    yield "| in dq.toml | as a variable | must be | such as | |\n|---|---|---|---|---|"
    for row in TABLE:
        example = row.form.example.replace("|", "\\|")
        yield f"| `{row.name}` | `{row.variable}` | {row.form.wanted} | `{example}` | {row.help} |"
    yield "\n## Secrets\n"
    yield "Secrets are variables only. Each may stand in a file instead, which the variable with `_FILE` at"
    yield "its end names. Where a name ends in `<NAME>`, there is one for each target that contracts name:"
    yield "the one of `sales-data` ends in `SALES_DATA`.\n"
    yield "| variable | channel | |\n|---|---|---|"
    for channel in channels.load().values():
        for one in channel.settings:
            if one.secret:
                yield f"| `{one.variable}{'<NAME>' * one.each}` | {channel.id} | {one.help} |"


WEBHOOK = f"""# Webhooks

dq posts one JSON object for each event of an incident; [how to](../how-to/alerts.md#webhooks) set it up. An
answer of 200 to 299 means that you have it. 429, and 503 with `Retry-After`, mean later; 5xx, and no answer
in ten seconds, mean that dq sends it again; every other answer ends it, and somebody else is told. No
redirect is followed.

| header | |
|---|---|
| `{IDEMPOTENCY}` | The `id` of the body. A request that is sent again has the same one: drop it. |
| `{SIGNATURE}` | `t=SECONDS,v1=HEX`: HMAC-SHA256 of `SECONDS.BODY` with your secret, the bytes as they come |

Compare in constant time, and refuse a `t` that is minutes old:

```python
import hashlib, hmac, time


def is_ours(header: str, body: bytes, secret: str) -> bool:
    said = dict(part.split("=", 1) for part in header.split(","))
    wanted = hmac.new(secret.encode(), said["t"].encode() + b"." + body, hashlib.sha256)
    return hmac.compare_digest(wanted.hexdigest(), said["v1"]) and abs(time.time() - int(said["t"])) < 300
```
"""


def webhook() -> Iterator[str]:
    """What a webhook is sent, and how to check it."""
    yield WEBHOOK
    yield "| key | |\n|---|---|"
    for name, schema in SCHEMA["properties"].items():
        one_of = ", ".join(f"`{value}`" for value in schema.get("enum", ()))
        yield f"| `{name}` | {schema['description']}{f' One of {one_of}.' if one_of else ''} |"
    yield "\nAs JSON Schema:\n\n```json"
    yield json.dumps(SCHEMA, indent=2)
    yield "```"


def metrics() -> Iterator[str]:
    """What `dq metrics` gives: one row each."""
    yield "# Metrics\n"
    yield "What `dq metrics` gives; [how to](../how-to/monitoring.md) says how it is read. `cycles` are"
    yield "promised deliveries. `product` is the contract's data product, or else the contract.\n"
    yield "| metric | type | unit | labels | series | |\n|---|---|---|---|---|---|"
    for row in METRICS:
        labels = ", ".join(f"`{label}`" for label in row.labels)
        name = f"{row.name}_info" if row.kind == "info" else row.name
        yield f"| `{name}` | {row.kind} | {row.unit} | {labels} | {row.series} | {row.help} |"
    bounds = ", ".join(f"{bound:g}" for bound in BUCKETS)
    yield f"\nThe buckets of a histogram end at {bounds} seconds and without an end.\n"
    yield "So there are four series for each promise, 18 for each channel, and some 20: 80,000 series and"
    yield "8 MB for 20,000 promises. No label holds a partition, a time, an incident, a person or a place, so"
    yield "that the number of series follows from the registry alone."


def odcs() -> Iterator[str]:
    """Every feature of ODCS, and what becomes of it."""
    yield "# Features of ODCS\n"
    yield "Each row is a small contract that a test holds against the gate and against the official JSON"
    yield "Schema, in every version that has it: none is refused. A warning says what is doubted.\n"
    yield "| feature | versions | becomes | warning |\n|---|---|---|---|"
    for feature in _features():
        version = next(one for one in reversed(SUPPORTED) if feature.is_of(one[1:]))
        last = "" if feature.until == "9.9.9" else f" to {feature.until}"
        cells = (
            f"`{feature.key}`",
            f"{feature.since}{last or ' on'}",
            _fate(feature.contract(version[1:]), feature.of),
            ", ".join(f"[{rule}](rules.md#{rule})" for rule in feature.warns),
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _features() -> Iterator[Any]:
    """The cases of the tests, which are not on the path of this program."""
    made = importlib.util.spec_from_file_location(
        "odcs_cases", HERE.parents[1] / "tests" / "fakes" / "odcs.py"
    )
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules[made.name] = module
    made.loader.exec_module(module)
    return module.features()  # type: ignore[no-any-return]  # a module that is loaded by its path


def _fate(data: bytes, path: str) -> str:
    """What becomes of the clause at a path; accepted, where the feature is no clause."""
    contract = parse(data, "feature.odcs.yaml").contract
    assert contract is not None
    found = [
        account
        for one in contract.objects
        for account in accounts(contract, one, clauses_of(contract, one, built_in()))
        if path and account.path == path
    ]
    if not found:
        return "accepted"
    state, reason = found[0].state, found[0].reason
    if state is not State.ENFORCED:
        return f"accepted, not enforced: {reason}"
    names = [f"[{name}](checks.md#{name})" if name in built_in() else name for name in reason.split(", ")]
    return f"checked by {', '.join(names)}"


PAGES = {
    "odcs": odcs,
    "settings": settings,
    "metrics": metrics,
    "webhook": webhook,
    "commands": commands,
    "rules": rules,
    "checks": checks,
    "clauses": clauses,
    "extension": extension,
    "python": python,
    "privileges": privileges,
}


def pages() -> dict[Path, str]:
    """Every page with its text."""
    return {HERE / f"{name}.md": NOTE + "\n" + "\n".join(made()) for name, made in PAGES.items()}


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
    sys.stdout.write(f"wrote {len(PAGES)} pages\n")
