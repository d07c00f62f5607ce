"""How this dq was installed, and the commands that add to it: the one place that messages take them from.

What reads the metadata of packages is imported when somebody asks: it is a tenth of a start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from dq.contracts.shared.outcome import MissingTool
from dq.contracts.shared.wording import one_line

NAME = "dq-contracts"


@cache
def release() -> str:
    """The version of this dq; the empty text where it was never installed."""
    from importlib import metadata

    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:  # a checkout that is only on the path
        return ""


def install_command(*extras: str) -> str:
    """The command that installs these extras, from where this dq came: a checkout, Git, a wheel or an index.

    pip and uv note the origin beside the package (PEP 610); what came from an index has no note.
    """
    return f"pip install {_requirement(extras)}"


@contextmanager
def needing(who: str, *extras: str) -> Iterator[None]:
    """Around the import of what extras bring: where it is not there, or broken, MissingTool says so.

    `who` begins its sentence, such as `Parquet needs pyarrow`.
    """
    try:
        yield
    except ImportError as error:
        gone = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if gone else f"cannot be loaded ({one_line(str(error))})"
        raise MissingTool(f"{who}, which {why}.", install_command(*extras)) from error


def upgrade_command() -> str:
    """The command that takes a newer dq from where this one came."""
    return f"pip install --upgrade {_requirement(())}"


def _requirement(extras: tuple[str, ...]) -> str:
    named = f"[{','.join(extras)}]" if extras else ""
    origin = _origin()
    if origin is None:
        return _quoted(NAME + named)
    url = _without_password(origin["url"])
    if origin.get("dir_info", {}).get("editable"):
        return f"--editable {_quoted(unquote(urlsplit(url).path) + named)}"
    vcs = origin.get("vcs_info")
    if vcs:
        url = f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}"
    return _quoted(f"{NAME}{named} @ {url}")


def _origin() -> dict[str, Any] | None:
    import json
    from importlib import metadata

    try:
        note = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # a checkout that is only on the path
        return None
    return json.loads(note) if note else None


def _without_password(url: str) -> str:
    """The URL with no user but Git's own of SSH, which is no secret."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=parts.netloc if user == "git" else host))


def _quoted(text: str) -> str:
    import shlex

    # The shell of Windows knows double quotes only.
    return f'"{text}"' if os.name == "nt" else shlex.quote(text)
