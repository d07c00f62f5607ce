"""The system's Chromium, driven by Playwright, and an ear for all that a page should never say."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, sync_playwright

# The same engine without the rest of a browser takes a third of the time for a window, and half for a page.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
INSTALL = "apt-get install chromium-headless-shell"
# A console's errors are of the page, of a policy that held something back, and of files that are not there.
_LOUD = ("error", "warning")


def found() -> str:
    """Where the browser is; skips the test where there is none, and fails it in CI."""
    at = next((path for name in NAMES if (path := shutil.which(name))), None)
    if at is None and os.environ.get("CI") == "true":
        pytest.fail(f"no Chromium is installed, and in CI nothing is skipped: {INSTALL}")
    if at is None:
        pytest.skip(f"no Chromium is installed: {INSTALL}")
    return at


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window. Nothing of a page leaves the machine: no host has a name."""
    at = found()
    words = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=at, args=words)
        try:
            yield running
        finally:
            running.close()


class Ear:
    """What a page said and asked for since `clear`. `faults` should stay empty, whatever the page shows."""

    def __init__(self, page: Page, *allowed: str) -> None:
        self._allowed = allowed
        self.faults: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)
        page.on("requestfailed", self._failed)
        page.on("popup", lambda other: self.faults.append(f"opened: {other.url}"))
        page.on("download", lambda other: self.faults.append(f"downloaded: {other.url}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in _LOUD:
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((*self._allowed, "data:")):
            self.faults.append(f"asked for: {request.url}")

    def _failed(self, request: Request) -> None:
        # Who goes on to the next page does not wait for the rest of this one.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"not loaded: {request.url} ({request.failure})")

    def heard(self) -> list[str]:
        """The faults since it was asked last."""
        faults, self.faults = self.faults, []
        return faults


_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
# The levels that the site promises; the rest of axe's rules are advice of its authors.
_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def axe(page: Page) -> list[str]:
    """The violations of a page by axe-core, each with the first elements that have it.

    It comes in by the driver's own door: the page's policy is about what the page loads.
    """
    page.evaluate(_AXE)
    options = {"runOnly": {"type": "tag", "values": list(_TAGS)}, "resultTypes": ["violations"]}
    made: dict[str, Any] = page.evaluate("options => axe.run(options)", options)
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: "
        + "; ".join(f"{node['html'][:160]} [{node['failureSummary'][:200]}]" for node in one["nodes"][:3])
        for one in made["violations"]
    ]
