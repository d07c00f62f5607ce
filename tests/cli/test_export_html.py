"""`dq export html`: one page that shows what the contract says and runs nothing of it."""

from __future__ import annotations

import json
from html.parser import HTMLParser

EVIL = "</title></style><script>alert(1)</script><img src=x onerror=alert(1)>\" onclick='x' \u202e&amp;"
TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "dl", "dt", "dd", "div", "table",
    "thead",
    "tbody", "tr", "th", "td", "a",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.attributes, self.texts = set(), [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.texts.append(data)


def test_a_page_shows_the_contract(dq, folder):
    ran = dq("export", "html", "orders.odcs.yaml", "-o", "orders.html")

    page = Page((folder / "orders.html").read_text())
    assert ran.code == 0
    for text in ("orders", "One row per order.", "ana@example.com", "partition key", "required", "bigint"):
        assert text in " ".join(page.texts)
    assert page.tags <= TAGS


BOUNDS = """
    quality:
      - {metric: rowCount, mustBeBetween: [69, 75]}
"""
BOUND = "        logicalTypeOptions: {minimum: 0, maximum: 2359}\n"


def test_no_bound_of_a_promise_is_left_out(dq, folder):
    (folder / "trains.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: trains\nversion: 1.0.0\nstatus: active\nschema:\n"
        f"  - name: trains{BOUNDS}    properties:\n      - name: at\n        logicalType: integer\n{BOUND}"
        "        quality:\n          - description: Cancelled.\n            metric: nullValues\n"
        "            mustBeLessThan: 3\n            unit: percent\n"
    )
    assert dq("export", "html", "trains.odcs.yaml", "-o", "trains.html").code == 0
    told = " ".join(Page((folder / "trains.html").read_text()).texts)
    for text in (
        "rowCount mustBeBetween 69 and 75",
        "minimum 0, maximum 2359, Cancelled. (nullValues mustBeLessThan 3 percent)",
    ):
        assert text in told


def test_hostile_texts_stay_texts_and_only_links_of_the_web_are_links(dq, folder):
    quoted = EVIL.replace("'", "''")
    (folder / "evil.odcs.yaml").write_text(
        f"apiVersion: v3.2.0\nkind: DataContract\nid: x\nversion: 1.0.0\nstatus: active\nname: '{quoted}'\n"
        f"description: {{purpose: '{quoted}', usage: 'javascript:alert(1)'}}\n"
        "authoritativeDefinitions:\n  - {type: a, url: 'https://example.com/?a=1&b=\"'}\n"
        "  - {type: b, url: 'javascript:alert(1)'}\n  - {type: c, url: 'https://example.com/x'}\n"
        f"schema:\n  - name: '{quoted}'\n    description: '{quoted}'\n    properties:\n"
        f"      - {{name: '{quoted}', logicalType: string, description: '{quoted}',"
        f" enum: [{{value: '{quoted}'}}]}}\n"
    )
    ran = dq("export", "html", "evil.odcs.yaml", "-o", "evil.html")

    text = (folder / "evil.html").read_text()
    page = Page(text)
    assert (ran.code, page.links) == (0, ["https://example.com/x"])
    assert page.tags <= TAGS
    assert not {name for name in page.attributes if name.startswith("on")}
    assert "\u202e" not in text
    assert "default-src &#x27;none&#x27;" in text


def test_t21_a_text_whose_host_is_read_in_several_ways_is_no_link(dq, folder):
    urls = [
        "https://user:pw@evil.com\\@good.com/",
        "https://evil.com\\.good.com/",
        "https://.good.com/",
        "https://good.com\u3002evil.com/",
        "https://good.com/x?y=1#z",
        "mailto:ana@good.com",
        "mailto:ana@good.com?body=x",
    ]
    definitions = "".join(f"  - {{type: a, url: {json.dumps(url)}}}\n" for url in urls)
    (folder / "links.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: x\nversion: 1.0.0\nstatus: active\n"
        f"authoritativeDefinitions:\n{definitions}"
        "schema:\n  - {name: t, properties: [{name: c, logicalType: string}]}\n"
    )

    ran = dq("export", "html", "links.odcs.yaml", "-o", "links.html")

    page = Page((folder / "links.html").read_text())
    assert (ran.code, page.links) == (0, ["https://good.com/x?y=1#z", "mailto:ana@good.com"])
