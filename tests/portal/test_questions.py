"""A stranger's five questions, each answered in at most two clicks from the first page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect


class Stranger:
    """Somebody before the first page, who has only a mouse and the name of a product; clicks are counted."""

    def __init__(self, page: Page, site: Path) -> None:
        self.page, self.clicks = page, 0
        page.goto((site / "index.html").as_uri())

    def click(self, name: str) -> None:
        self.clicks += 1
        self.page.get_by_role("link", name=name).first.click()

    def find(self, words: str) -> None:
        self.click("Find")
        self.page.get_by_label("Words").fill(words)
        self.clicks += 1
        self.page.locator("#found a").first.click()

    def reads(self, words: str) -> None:
        expect(self.page.locator("h1")).to_be_visible()
        # What is folded, or stands in the title of a picture, is not read by who has not opened it.
        assert words in self.page.locator("main").inner_text()


def _is_it_fresh(one: Stranger) -> None:
    one.find("orders-090")
    one.reads("Next due")
    one.reads("Last delivered")


def _may_i_rely_on_it(one: Stranger) -> None:
    one.find("orders-090")
    one.reads("of the deliveries of 30 d")
    one.reads("Misses")
    one.reads("passed, ")


def _who_do_i_ask(one: Stranger) -> None:
    one.find("orders-090")
    one.reads("owner0@example.com")
    one.reads("#help-0")


def _what_breaks_when_it_changes(one: Stranger) -> None:
    one.find("hub")
    one.reads("Products made from it")
    one.reads("orders-090")
    one.reads("forecasts")


def _what_happened_last_tuesday(one: Stranger) -> None:
    # 2026-05-26 was a Tuesday; the mesh is looked at on the Sunday after it.
    one.find("orders-084")
    one.reads("2026-05-26 06:00 UTC\tlate\tdelivered 2 h after due time")


def _why_was_yesterday_late(one: Stranger) -> None:
    one.find("orders-082")
    one.reads(
        "Yesterday: the delivery of daily due 2026-05-30 06:00 UTC arrived at 2026-05-31 08:00 UTC, 1 d 2 h"
    )
    one.reads("The contract declares no input.")


def _which_input_was_late_yesterday(one: Stranger) -> None:
    one.find("orders-081")
    one.reads("Yesterday: the delivery of daily due 2026-05-30 06:00 UTC is missing")
    one.reads("Its input orders-080 is missing (due 2026-05-30 06:00 UTC).")
    cause = one.page.locator("section[aria-labelledby=yesterday]").get_by_role("link", name="orders-080")
    expect(cause.first).to_have_attribute("href", "../../products/orders-080/index.html")
    # The other input came in time.
    assert "hub" not in one.page.locator("section[aria-labelledby=yesterday]").inner_text()


def _may_i_use_it_now(one: Stranger) -> None:
    one.find("hub")
    one.reads("With care: the newest delivery has not been checked yet.")


def _since_when_are_there_more_nulls(one: Stranger) -> None:
    one.find("orders-090")
    one.reads("amount_90: More NULLs since 2026-05-26: 9.2%, before 0.1%.")
    chart = one.page.get_by_role("img", name="NULL share 13 times: 0.1% to 9.2%, 9.2% at last")
    expect(chart).to_be_visible()


QUESTIONS: dict[str, Callable[[Stranger], None]] = {
    "is it fresh?": _is_it_fresh,
    "may I rely on it?": _may_i_rely_on_it,
    "who do I ask?": _who_do_i_ask,
    "what breaks when it changes?": _what_breaks_when_it_changes,
    "may I use it now?": _may_i_use_it_now,
    "why was yesterday late?": _why_was_yesterday_late,
    "which input was late yesterday?": _which_input_was_late_yesterday,
    "since when are there more NULLs?": _since_when_are_there_more_nulls,
    "what happened last Tuesday?": _what_happened_last_tuesday,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_in_at_most_two_clicks(page: Page, site: Path, question: str) -> None:
    one = Stranger(page, site)

    QUESTIONS[question](one)

    assert one.clicks <= 2
