"""Templates: values in, pages out. Every value is text, whatever a stranger wrote into it."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dq.contracts.shared.install import needing, release
from dq.contracts.shared.wording import block, in_xml

if TYPE_CHECKING:
    from jinja2 import Environment


STATIC = ("icon.svg", "portal.css", "portal.js")


def render(name: str, up: str, **values: Any) -> bytes:
    """A page; `up` leads from it to the top of the site, such as `../../`."""
    text: str = _environment().get_template(name).render(up=up, **values)
    return text.encode("utf-8")


def static(name: str) -> bytes:
    """A file that goes into the site as it is."""
    return (files("dq.portal") / "static" / name).read_bytes()


def require_templates() -> None:
    """Raises MissingTool where the extra is not installed."""
    _environment()


@cache
def templates_digest() -> str:
    """The hash of all that pages are made with: when it changes, every page is written again."""
    made = sha256(release().encode())
    for folder in ("static", "templates", "views", "data", "generation"):
        for one in sorted((files("dq.portal") / folder).iterdir(), key=lambda one: one.name):
            if one.is_file():
                made.update(one.name.encode() + b"\0" + one.read_bytes())
    return made.hexdigest()


@cache
def _environment() -> Environment:
    with needing("The portal needs jinja2", "portal"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup, escape
    made = Environment(
        loader=PackageLoader("dq.portal", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
        auto_reload=False,
    )
    # What XML cannot hold at all is shown; everything else is itself.
    made.filters["xml"] = lambda value: Markup(in_xml(str(escape(value))))
    return made


def _shown(value: Any) -> Any:
    """A text of a stranger as something that can be seen: no mark of direction or control character acts.

    What is `None` is a mistake of ours, and shows.
    """
    return block(value) if type(value) is str else value
