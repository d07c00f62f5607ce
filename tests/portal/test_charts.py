"""Charts as markup: geometry, shapes, and texts of strangers."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from fakes.strangers import TEXTS

from dq.portal.charts import (
    Arrival,
    Bar,
    CountRow,
    HeatCell,
    Node,
    Scale,
    ShareRow,
    Span,
    Stack,
    Svg,
    arrivals,
    bars,
    counts,
    graph,
    heat_strip,
    legend,
    line,
    shares,
    sparkline,
    stacks,
    timeline,
)


def parsed(svg: Svg) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def point(kind: str, minutes: float | None = None, left: int = 1, title: str = "a cycle") -> Arrival:
    return Arrival(kind, title, "2026-05-01", minutes, left)


def drawn(points: list[Arrival], grace: float = 30) -> ElementTree.Element:
    return parsed(arrivals(points, grace, "deliveries", lambda minutes: f"{minutes:g} min"))


def heights(chart: ElementTree.Element, kind: str) -> list[float]:
    return [float(mark.get("cy", "nan")) for mark in chart.iter("circle") if mark.get("class") == kind]


def test_an_early_delivery_is_below_the_due_line_and_an_unknown_one_on_it() -> None:
    chart = drawn([point("intime", -40), point("unknown"), point("intime", 0)])

    [early, on_time], [unknown] = heights(chart, "intime"), heights(chart, "unknown")
    assert early > on_time == unknown


def test_a_late_outlier_does_not_hide_the_others() -> None:
    usual = [point("intime", -40 - number) for number in range(30)]
    alone, with_outlier = drawn(usual), drawn([*usual, point("late", 10_000)])

    spread = [max(ys) - min(ys) for ys in (heights(alone, "intime"), heights(with_outlier, "intime"))]
    assert spread[1] > 0.25 * spread[0] > 1


def test_misses_are_at_the_top_edge_and_have_a_shape_of_their_own() -> None:
    chart = drawn([point("intime", -5), point("missing")])

    [mark] = [path for path in chart.iter("path") if path.get("class") == "missing"]
    top = float(mark.get("d", "").split()[1].split("l")[0])
    assert top < min(heights(chart, "intime"))


def test_a_spent_budget_is_below_zero_and_has_its_own_area() -> None:
    fine, spent = drawn([point("intime", 1, left) for left in (1, 0)]), drawn([point("late", 1, -2)])

    classes = [{path.get("class") for path in chart.iter("path")} for chart in (fine, spent)]
    assert "spent" not in classes[0]
    assert "spent" in classes[1]
    assert "-2" in [text.text for text in spent.iter("text")]


@pytest.mark.parametrize("count", [0, 1, 2, 90])
def test_charts_of_few_values_are_markup(count: int) -> None:
    drawn([point("intime", -40)] * count, grace=0)
    parsed(bars([Bar(0, "2026-05-01", "none")] * max(count, 1), (None, None), "rows"))
    parsed(sparkline(["pass", "fail", "error", "skipped"] * count, "results"))


def test_bars_outside_of_what_is_expected_are_hollow() -> None:
    values = [Bar(number, "day", "rows", out) for number, out in ((10, True), (100, False), (200, True))]
    chart = parsed(bars(values, (50, 150), "rows"))

    kinds = [rect.get("class") for rect in chart.iter("rect")]
    assert kinds == ["band", "out", "bar", "out"]


def test_no_mark_is_outside_of_the_picture() -> None:
    chart = drawn([point("intime", -(10.0**power)) for power in range(9)] + [point("late", 1e9)])

    left, _, width, height = map(float, chart[1].get("viewBox", "").split())
    for mark in chart.iter("circle"):
        assert left <= float(mark.get("cx", "nan")) <= left + width
        assert 0 <= float(mark.get("cy", "nan")) <= height


def test_labels_of_values_are_beside_the_picture_so_that_they_stay_when_it_is_scrolled() -> None:
    axis, picture = drawn([point("intime", -5), point("missing")])

    labels = [text.text for text in axis.iter("text")]
    assert {"due", "missing", "+30 min", "0"} <= set(labels)
    assert set(labels).isdisjoint(text.text for text in picture.iter("text"))
    assert max(float(text.get("x", "nan")) for text in axis.iter("text")) <= float(
        axis.get("viewBox", "").split()[2]
    )


@pytest.mark.parametrize("text", TEXTS.values())
def test_a_text_of_a_stranger_is_text(text: str) -> None:
    charts = (
        arrivals([point("late", 3, title=text)], 0, text, lambda _: text),
        bars([Bar(3, text, text)], None, text),
        sparkline(["pass"], text),
        line([1, None, 2], text),
        timeline([Span(text, "late", 1, None, text)], 90, [text], text),
        heat_strip([(text, [HeatCell("some", text, text)])], [text], text),
        counts([CountRow(text, "late", [3])], [text], text),
        shares([ShareRow(text, 0.5, 0.9, text)], text),
        stacks([Stack((1, 2, 3), text, text)], text),
        graph([(text, [Node(text, text, "a.html", text, "a.svg")]), ("", [Node(text, text, "")])], [], text),
    )

    for chart in charts:
        allowed = {"div", "svg", "title", "text", "path", "rect", "circle", "g", "a", "image"}
        assert {element.tag for element in parsed(chart).iter()} <= allowed
    assert "<script" not in legend({"late": (text, 1)})


def test_a_scale_of_one_value_is_in_the_middle() -> None:
    assert Scale(5, 5, 0, 10)(5) == 5
    assert [Scale(0, 10, 100, 0)(value) for value in (-1, 0, 5, 11)] == [100, 100, 50, 0]


def test_a_long_sparkline_has_one_stroke_for_equal_results_in_a_row() -> None:
    statuses = ["pass"] * 50 + ["fail"] * 2 + ["error"] + ["pass"] * 30

    strokes = {
        path.get("class"): path.get("d", "") for path in parsed(sparkline(statuses, "results")).iter("path")
    }

    assert {status: path.count("M") for status, path in strokes.items()} == {"pass": 2, "fail": 1, "error": 2}
    assert len(sparkline(statuses, "results")) < 400


def test_a_line_is_broken_where_nothing_was_measured() -> None:
    [path] = parsed(line([1, 2, None, 3, 4], "values")).iter("path")

    assert path.get("d", "").count("M") == 2


def test_a_stroke_marks_since_when_a_line_is_another() -> None:
    marks = [
        path for path in parsed(line([1, 1, 9, 9], "values", 2)).iter("path") if path.get("class") == "change"
    ]

    assert [mark.get("d") for mark in marks] == ["M28 0v18"]


def test_an_ongoing_incident_reaches_the_end_and_one_of_a_moment_is_visible() -> None:
    spans = [Span("quality", "broken", 80, None, "open"), Span("daily", "late", 3, 3, "short")]
    paths = list(parsed(timeline(spans, 90, ["a", "b"], "incidents")).iter("path"))

    ends = {
        path.get("class"): [float(number) for number in path.get("d", "")[1:].split("H")[0].split()]
        for path in paths
    }
    assert set(ends) >= {"broken", "late"}
    assert "l7 7" in next(path.get("d", "") for path in paths if path.get("class") == "broken")
    short = next(path.get("d", "") for path in paths if path.get("class") == "late")
    begin, end = float(short[1:].split()[0]), float(short.split("H")[1].split("v")[0])
    assert end - begin >= 4


def test_a_cell_that_is_not_full_has_a_text_and_full_ones_share_a_path() -> None:
    cells = [
        HeatCell("full"),
        HeatCell("some", "2", "two"),
        HeatCell("full"),
        HeatCell("unknown", "?", "unknown"),
    ]
    chart = parsed(heat_strip([("sales", cells)], ["a", "b", "c", "d"], "days"))

    kinds = [path.get("class") for path in chart.iter("path")]
    texts = {text.text for text in chart.iter("text") if "on-" in text.get("class", "")}
    assert (kinds, texts) == (["full", "some", "unknown"], {"2", "?"})


def test_bars_of_all_groups_have_one_scale_and_their_counts() -> None:
    chart = parsed(
        counts([CountRow("a", "late", [0, 10]), CountRow("b", "broken", [5, 0])], ["x", "y"], "counts")
    )

    paths = {path.get("class"): path.get("d", "") for path in chart.iter("path")}
    heights = {kind: float(paths[kind].split("v-")[1].split("h")[0]) for kind in ("late", "broken")}
    assert heights == {"late": 24, "broken": 12}
    assert {"10", "5"} <= {text.text for text in chart.iter("text")}
    assert "0" not in {text.text for text in chart.iter("text")}


def test_a_share_below_its_objective_is_a_cross_and_one_at_it_a_dot() -> None:
    rows = [ShareRow("a", 0.9, 0.95, "missed"), ShareRow("b", 0.95, 0.95, "met")]
    chart = parsed(shares(rows, "objectives"))

    assert [path.get("class") for path in chart.iter("path")].count("missing") == 1
    assert [circle.get("class") for circle in chart.iter("circle")] == ["intime"]


def test_a_stack_is_as_tall_as_its_sum() -> None:
    chart = parsed(stacks([Stack((5, 3, 2), "a", "ten"), Stack((0, 0, 5), "b", "five")], "tables"))

    ten, five = (
        sum(float(rect.get("height", "nan")) for rect in group.iter("rect")) for group in chart.iter("g")
    )
    assert ten == pytest.approx(2 * five, abs=0.3)
