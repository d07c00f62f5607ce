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
from dq.dataquality.clauses.coverage import EnforcementState, clause_coverage
from dq.dataquality.clauses.kind import clauses_of
from dq.operations.metrics import BUCKETS
from dq.operations.metrics import TABLE as METRICS
from dq.operations.runtime.settings import TABLE
from dq.validators import rule_page
from dq.validators.lint import load_rules

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the code. -->\n"


def commands() -> Iterator[str]:
    """The command line: every command with its text and options."""
    yield "# Commands\n"
    yield "Exit codes: **0** fine · **1** violations found · **2** usage or configuration ·"
    yield "**3** could not evaluate · **4** an alert could not be delivered · **70** a bug in dq.\n"
    root: Any = typer.main.get_command(application(names()))
    for name, command in sorted(root.commands.items()):
        inner = getattr(command, "commands", None)
        for sub, subcommand in sorted(inner.items()) if inner else [("", command)]:
            yield from _command(f"dq {name} {sub}".rstrip(), subcommand)


def _command(title: str, command: Any) -> Iterator[str]:
    yield f"## {title}\n"
    yield _prose(command.help or "")
    rows = [
        (
            ", ".join(f"`{flag}`" for flag in (parameter.opts or [parameter.name])),
            " ".join((parameter.help or "").split()),
        )
        for parameter in command.params
        if parameter.name != "help"
    ]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| {flags} | {text} |" for flags, text in rows)
        yield ""


def _prose(text: str) -> str:
    """The help text with its example as a code block."""
    before, marker, example = text.partition("Example: ")
    body = before.strip() + "\n"
    return body + (f"\n```sh not-run\n{example.strip()}\n```\n" if marker else "")


def rules() -> Iterator[str]:
    """The gate's rules with their pages."""
    yield "# Validation rules\n"
    yield "Set a rule's severity, or turn it off, in the registry's `dq-policy.yaml`.\n"
    all_rules = load_rules()
    yield "A severity in brackets belongs to an optional rule: it is off until a policy names it or sets"
    yield "`profile: strict`. Warnings are about contracts that the standard allows.\n"
    yield "| rule | severity | finding |\n|---|---|---|"
    for rule in all_rules.values():
        severity = f"({rule.severity})" if rule.opt_in else rule.severity
        yield f"| [{rule.id}](#{rule.id}) | {severity} | {rule_page.parse(rule.page).summary} |"
    yield ""
    for rule in all_rules.values():
        page = rule_page.parse(rule.page)
        yield f"## {rule.id}\n\n{page.summary}\n\n{page.why}\n"
        yield f"Bad:\n\n```yaml\n{page.bad.rstrip()}\n```\n"
        yield f"Good:\n\n```yaml\n{page.good.rstrip()}\n```\n"
        yield f"{page.hint}\n"


def checks() -> Iterator[str]:
    """The check kinds with their pages."""
    yield "# Data checks\n"
    for kind in built_in().values():
        yield f"## {kind.id}\n\n{_sections(kind.page)}\n"


_HEADING = re.compile(r"(Why|Bad|Good|Nulls|How to fix):(.*)")


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
    yield "# Extension keys\n"
    yield "The values of dq's custom properties: at most one per element, in ODCS 3.2 with `vendor: dq`."
    yield "`dq schema` prints the JSON Schema.\n"
    where = {
        "delivery": "an SLA entry (ODCS 3.0 and 3.1: the contract, as `delivery:<sla id>`)",
        "dataset": "an object",
        "csv": "a server",
        "layout": "a server",
        "scope": "a quality rule",
        "route": "a support channel",
        "retention": "an SLA entry `retention` (ODCS 3.0 and 3.1: the contract, as `retention:<sla id>`)",
        "identity": "a property, at any depth; a name or a list of names stands for the names alone",
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
    yield "The operator's settings; see [how to use them](../how-to/settings.md). Set them in the `dq.toml`"
    yield "that `DQ_CONFIG` or `dq --config` names, or in environment variables, which take precedence. In a"
    yield "variable, separate the items of a list with commas.\n"
    yield "| key in dq.toml | variable | type | example | |\n|---|---|---|---|---|"
    for row in TABLE:
        example = row.form.example.replace("|", "\\|")
        yield f"| `{row.name}` | `{row.variable}` | {row.form.expected} | `{example}` | {row.help} |"
    yield "\n## Secrets\n"
    yield "Secrets can only be set in environment variables, or in a file named by the variable with the"
    yield "suffix `_FILE`. If a name ends in `<NAME>`, there is one variable for each target in the"
    yield "contracts: for `sales-data` it ends in `SALES_DATA`.\n"
    yield "| variable | channel | |\n|---|---|---|"
    for channel in channels.load().values():
        for setting in channel.settings:
            if setting.secret:
                variable = f"{setting.variable}{'<NAME>' * setting.per_target}"
                yield f"| `{variable}` | {channel.id} | {setting.help} |"


WEBHOOK = f"""# Webhooks

dq sends one JSON object by POST for each event of an incident ([setup](../how-to/alerts.md#webhooks)). A
status of 200 to 299 means that you have received it. After 429, or 503 with `Retry-After`, dq waits; after
another 5xx, or no answer within ten seconds, dq retries. Any other status is final, and the alert goes to
another receiver. Redirects are not followed.

| header | |
|---|---|
| `{IDEMPOTENCY}` | The `id` of the body. A retry has the same `id`: ignore it if you have processed it. |
| `{SIGNATURE}` | `t=SECONDS,v1=HEX`: HMAC-SHA256 of `SECONDS.BODY` with your secret, over the raw bytes |

Compare in constant time, and reject a `t` that is several minutes old:

```python
import hashlib, hmac, time


def is_ours(header: str, body: bytes, secret: str) -> bool:
    said = dict(part.split("=", 1) for part in header.split(","))
    wanted = hmac.new(secret.encode(), said["t"].encode() + b"." + body, hashlib.sha256)
    return hmac.compare_digest(wanted.hexdigest(), said["v1"]) and abs(time.time() - int(said["t"])) < 300
```
"""


def webhook() -> Iterator[str]:
    """The body and headers of a webhook, and how to verify them."""
    yield WEBHOOK
    yield "| key | |\n|---|---|"
    for name, schema in SCHEMA["properties"].items():
        one_of = ", ".join(f"`{value}`" for value in schema.get("enum", ()))
        yield f"| `{name}` | {schema['description']}{f' One of {one_of}.' if one_of else ''} |"
    yield "\nAs JSON Schema:\n\n```json"
    yield json.dumps(SCHEMA, indent=2)
    yield "```"


def metrics() -> Iterator[str]:
    """The metrics of `dq metrics`: one row each."""
    yield "# Metrics\n"
    yield "The metrics of `dq metrics`; see [how to collect them](../how-to/monitoring.md). `cycles` are"
    yield "expected deliveries. `product` is the contract's data product, or the contract if it has none.\n"
    yield "| metric | type | unit | labels | series | |\n|---|---|---|---|---|---|"
    for row in METRICS:
        labels = ", ".join(f"`{label}`" for label in row.labels)
        name = f"{row.name}_info" if row.kind == "info" else row.name
        yield f"| `{name}` | {row.kind} | {row.unit} | {labels} | {row.series} | {row.help} |"
    bounds = ", ".join(f"{bound:g}" for bound in BUCKETS)
    yield f"\nThe buckets of a histogram end at {bounds} seconds and at +Inf.\n"
    yield "In total there are four series per SLO, 18 per channel, and about 20 others: 80,000 series and"
    yield "8 MB for 20,000 SLOs. No label contains a partition, a time, an incident, a person or a location,"
    yield "so the number of series depends only on the registry."


def odcs() -> Iterator[str]:
    """Every feature of ODCS, and what becomes of it."""
    yield "# Features of ODCS\n"
    yield "A test validates a small contract for each row with dq and with the official JSON Schema, in every"
    yield "version that has the feature: none is refused. The last column lists the warnings.\n"
    yield "| feature | versions | result | warning |\n|---|---|---|---|"
    for feature in _features():
        version = next(supported for supported in reversed(SUPPORTED) if feature.is_of(supported[1:]))
        last = "" if feature.until == "9.9.9" else f" to {feature.until}"
        cells = (
            f"`{feature.key}`",
            f"{feature.since}{last or ' on'}",
            _result(feature.contract(version[1:]), feature.of),
            ", ".join(f"[{rule}](rules.md#{rule})" for rule in feature.warns),
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _features() -> Iterator[Any]:
    """The cases of the tests, which are not on the path of this program."""
    spec = importlib.util.spec_from_file_location(
        "odcs_cases", REFERENCE.parents[1] / "tests" / "fakes" / "odcs.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.features()  # type: ignore[no-any-return]  # a module that is loaded by its path


def _result(data: bytes, path: str) -> str:
    """Return how the clause at a path is treated, or "accepted" if the feature is not a clause."""
    contract = parse(data, "feature.odcs.yaml").contract
    assert contract is not None
    accounts = [
        account
        for schema_object in contract.objects
        for account in clause_coverage(
            contract, schema_object, clauses_of(contract, schema_object, built_in())
        )
        if path and account.path == path
    ]
    if not accounts:
        return "accepted"
    state, reason = accounts[0].state, accounts[0].reason
    if state is not EnforcementState.ENFORCED:
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
    return {REFERENCE / f"{name}.md": NOTE + "\n" + "\n".join(lines()) for name, lines in PAGES.items()}


if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
    sys.stdout.write(f"wrote {len(PAGES)} pages\n")
