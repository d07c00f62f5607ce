"""The registry that the portal is shown with has every state, and the eyes that look at pages see."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fakes.browser import Ear, axe
from fakes.portal_mesh import AS_OF, PortalMesh
from playwright.sync_api import Browser


def test_the_mesh_has_every_status_of_a_delivery(mesh: PortalMesh) -> None:
    told = mesh.dq("status", "registry", "--as-of", AS_OF, "--format", "json").json

    counts = Counter(cycle["status"] for one in told["deliveries"] for cycle in one["cycles"])
    assert set(counts) == {
        "on_time", "on_time_in_grace", "late", "missing", "never", "excused", "unknown",
    }  # fmt: skip
    assert len(mesh.products) == 200
    assert [len(one["cycles"]) for one in told["deliveries"] if one["contract"] == "never-run"] == [0]
    assert max(len(one["cycles"]) for one in told["deliveries"]) > 85, "ninety days for some"
    assert [one["contract"] for one in told["withdrawn"]] == ["retired-later"]
    assert {one["status"] for one in told["checks"]} == {"pass", "fail", "error", "skipped"}
    assert any("exhausted" in one["budget"] for one in told["deliveries"])
    assert any("1 of 1 miss used" in one["budget"] for one in told["deliveries"])


def test_the_mesh_has_every_state_of_an_incident(mesh: PortalMesh) -> None:
    told = mesh.dq("incidents", "--all", "--as-of", AS_OF, "--format", "json").json

    # Of all only the newest are shown.
    ended = mesh.dq("incidents", "--all", "--contract", "retired-later", "--format", "json").json
    states = {one["state"] for one in (*told["incidents"], *ended["incidents"])}
    assert states >= {"open", "acked", "resolved", "excused", "withdrawn"}


def test_the_ear_hears_what_a_page_should_not_do(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        "<!doctype html><title>x</title><img src='http://evil.example/x.png'><img src=gone.png>"
        "<script>console.error('a'); alert('b'); window.open('about:blank'); throw Error('c')</script>"
    )
    page = chromium.new_page()
    ear = Ear(page, "file://")

    page.goto(file.as_uri())
    heard = ear.heard()
    page.context.close()

    said = "\n".join(heard)
    assert "asked for: http://evil.example" in said
    assert "not loaded: file://" in said
    assert "error: a" in said
    assert "dialog: b" in said
    assert "opened: " in said
    assert "error: c" in said


def test_a_refused_script_is_heard_and_does_not_run(chromium: Browser) -> None:
    page = chromium.new_page()
    ear = Ear(page)
    policy = "<meta http-equiv=content-security-policy content=\"default-src 'none'\">"

    page.set_content(f"{policy}<script>window.fired = 1</script><p onclick='window.fired = 2'>x</p>")

    assert page.evaluate("window.fired") is None
    assert "Content Security Policy" in "\n".join(ear.heard())
    page.context.close()


def test_axe_finds_a_pale_text_and_a_picture_without_words(chromium: Browser) -> None:
    page = chromium.new_page()
    body = "<main><h1>a</h1><p style='color:#aaa'>a pale text</p><img src='data:,'></main>"

    page.set_content(f"<html lang=en><title>x</title>{body}")
    found = "\n".join(axe(page))

    assert "color-contrast (serious)" in found
    assert "image-alt (critical)" in found
    page.context.close()
