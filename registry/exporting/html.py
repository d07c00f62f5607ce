"""HTML: one page without script, to read, print and send."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.escaping import html
from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.contracts.types import catalog_type
from dq.contracts.yaml.portable import commented
from dq.registry.exporting import Exported, ExportKind, supported_keys

# The page loads no script, image or font; the style is inline.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 0 auto; padding: 1rem;
       overflow-wrap: anywhere; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2rem; }
p { white-space: pre-line; } code { font-size: .9em; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: start; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #8886; }
td:first-child { overflow-wrap: normal; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem; white-space: pre-line; }
@media print { body { max-width: none; font-size: 10pt; } tr { break-inside: avoid; }
               .wide { overflow: visible; } }
"""
_MAIL = re.compile(r"mailto:[A-Za-z0-9.!#$%*+/=_~-]+@[A-Za-z0-9.-]+")


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """Return the page: owners, servers and service levels, and a table for each object."""
    title = contract.name or contract.id
    lines = [
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_text(title)}</title>", f"<style>{_STYLE}</style>", "</head>", "<body>",
        f"<h1>{_text(title)}</h1>", *_terms(_head(contract)),
        *(line for schema_object in objects for line in _object(schema_object)),
        *_table("Service levels", ("Property", "Value", "Element", "Schedule"), _levels(contract)),
        *_table("Servers", ("Server", "Type", "Location"), _servers(contract)),
        "</body>", "</html>",
    ]  # fmt: skip
    return Exported("\n".join(lines) + "\n")


def _text(value: object) -> str:
    """Escape a text for HTML, without control characters for the text direction."""
    return html("\n".join(commented(line) for line in str(value).splitlines()))


def _link(value: str) -> str:
    if web_address(value, WEB) or _MAIL.fullmatch(value):
        return f'<a href="{html(value)}" rel="noopener noreferrer">{_text(value)}</a>'
    return _text(value)


def _terms(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "<dl>"
    yield from (f"<dt>{name}</dt><dd>{_link(value)}</dd>" for name, value in pairs if value)
    yield "</dl>"


def _head(contract: Contract) -> Iterator[tuple[str, str]]:
    description = contract.description
    yield "Contract", f"{contract.id} {contract.version}"
    yield "Status", contract.status or ""
    yield "Domain", contract.domain or ""
    yield "Owners", ", ".join(member.name or member.username for member in contract.members())
    if description is not None:
        yield "Purpose", description.purpose or ""
        yield "Usage", description.usage or ""
        yield "Limitations", description.limitations or ""
    for channel in contract.support:
        yield "Support", channel.url or channel.channel
    for definition in contract.authoritative_definitions:
        yield "Definition", definition.url


def _object(schema_object: SchemaObject) -> Iterator[str]:
    rows = [row for prop in schema_object.properties for row in _rows(prop, "")]
    about = [schema_object.description or "", *map(_rule, schema_object.quality)]
    columns = ("Column", "Type", "Description", "Constraints")
    yield from _table(schema_object.name, columns, rows, [text for text in about if text])


def _rows(prop: Property, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    name = f"{prefix}{prop.column}" if prop.column else prefix.rstrip(".")
    yield name, str(catalog_type(prop)), prop.description or "", ", ".join(_promises(prop))
    for inner in prop.properties:
        yield from _rows(inner, f"{name}.")
    parts = [(prop.items, "[]")]
    if prop.map is not None:
        parts.append((prop.map.value, ".*"))
    for part, sign in parts:
        if part is not None and (list(part.children()) or part.description or any(_promises(part))):
            yield from _rows(part, f"{name}{sign}.")


def _promises(prop: Property) -> Iterator[str]:
    if prop.primary_key:
        yield "primary key"
    if prop.partitioned:
        yield "partition key"
    if prop.required:
        yield "required"
    if prop.unique:
        yield "unique"
    if prop.enum:
        yield "one of " + ", ".join(str(entry.value) for entry in prop.enum)
    if prop.classification:
        yield prop.classification
    if prop.logical_type_options is not None:
        bounds = prop.logical_type_options.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
        yield from (f"{name} {_value(value)}" for name, value in bounds.items())
    yield from map(_rule, prop.quality)


def _rule(rule: Quality) -> str:
    """Return a rule with its bounds, in ODCS terms, after its description."""
    bounds = [f"{name} {_value(value)}" for name, value in rule.operators()]
    summary = " ".join(
        [rule.metric or rule.name or rule.type, *bounds, rule.unit or "" if bounds else ""]
    ).strip()
    return f"{rule.description} ({summary})" if rule.description else summary


def _value(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(_value(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _levels(contract: Contract) -> Iterator[tuple[str, str, str, str]]:
    for level in contract.sla_properties:
        value = "" if level.value is None else f"{level.value} {level.unit or ''}"
        yield level.property, value.strip(), level.element or "", level.schedule or ""


def _servers(contract: Contract) -> Iterator[tuple[str, str, str]]:
    for server in contract.servers:
        yield (
            server.server,
            server.type,
            server.get("location") or server.get("path") or server.get("database") or "",
        )


def _table(
    title: str, names: tuple[str, ...], rows: Iterable[tuple[str, ...]], about: Iterable[str] = ()
) -> Iterator[str]:
    html_rows = ["".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows]
    if not html_rows:
        return
    yield f"<h2>{_text(title)}</h2>"
    yield from (f"<p>{_text(text)}</p>" for text in about)
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in names)
    yield "</tr></thead><tbody>"
    yield from (f"<tr>{row}</tr>" for row in html_rows)
    yield "</tbody></table></div>"


_SHOWN = "description primaryKey partitioned required unique enum classification logicalTypeOptions quality"
SUPPORTED_KEYS = supported_keys(
    _SHOWN, _SHOWN, _SHOWN, "description quality",
    "description team support servers slaProperties authoritativeDefinitions",
)  # fmt: skip
KIND = ExportKind("html", "one page to read, print and send", write, SUPPORTED_KEYS)
