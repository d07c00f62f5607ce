"""Draws the messages of tests/alerts/golden as Slack, a mail program and Teams show them, into docs/pictures,
and takes pictures of the portal.

`make pictures` runs it. It needs Chromium (Debian: `apt-get install chromium`). Slack's own looks are
Slack's; this follows the layout that Slack documents, at docs.slack.dev/block-kit: a header, two columns of
fields, a bar in the colour of the attachment. A mail is the HTML that was sent, below its subject. A card of
Teams follows adaptivecards.io: a line for each RichTextBlock, buttons for its actions.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from _portal import portal

DOCS = Path(__file__).parent
GOLDEN = DOCS.parent / "tests" / "alerts" / "golden"
PICTURES = DOCS / "pictures"

# A picture, the golden file whose channel it shows, and its height in pixels.
SHOWN = {"missing": ("missing", 480), "late": ("late", 460), "storm": ("storm", 330)}
MAIL_HEIGHT, CARD_HEIGHT = 720, 540
WIDTH = 760

STYLE = """
body { margin: 0; background: #fff; font: 15px/1.46 Lato, 'DejaVu Sans', sans-serif; color: #1d1c1d; }
.message { display: flex; gap: 10px; padding: 14px 18px 4px; }
.icon { width: 36px; height: 36px; border-radius: 8px; background: #3b4252; color: #fff; font-weight: 700;
        display: flex; align-items: center; justify-content: center; flex: none; }
.who { font-weight: 900; } .app { font-size: 10px; background: #eee; padding: 1px 4px; border-radius: 3px;
       color: #616061; margin: 0 5px; } .at { font-size: 12px; color: #616061; }
.head { font-size: 18px; font-weight: 900; margin: 2px 0 6px; }
.bar { border-left: 4px solid; border-radius: 4px; padding-left: 12px; }
.fields { display: grid; grid-template-columns: 1fr 1fr; gap: 8px 18px; margin: 8px 0; }
.section { margin: 6px 0; white-space: pre-wrap; }
.context { font-size: 12.5px; color: #616061; white-space: pre-wrap; margin-top: 6px; }
pre { background: #f8f8f8; border: 1px solid #ddd; border-radius: 4px; padding: 7px 9px; margin: 6px 0 0;
      font: 12.5px/1.5 'DejaVu Sans Mono', monospace; }
a { color: #1264a3; text-decoration: none; } .call { background: #e8f5fa; color: #1264a3; padding: 0 2px;
    border-radius: 3px; }
.reply { margin: 4px 0 0 64px; padding: 6px 0 0 12px; border-left: 2px solid #ddd; white-space: pre-wrap;
         font-size: 14px; } .reply b { display: block; font-size: 12px; color: #616061; font-weight: 400; }
.mail { margin: 14px 18px; border: 1px solid #ddd; border-radius: 6px; padding: 10px 16px; }
.mail .subject { font-size: 17px; border-bottom: 1px solid #eee; padding-bottom: 6px; margin-bottom: 10px; }
.mail .from { font-size: 12px; color: #616061; }
.card { margin: 14px 18px; border: 1px solid #d1d1d1; border-radius: 6px; padding: 12px 16px;
        font: 14px/1.5 'Segoe UI', Lato, sans-serif; box-shadow: 0 1px 3px #0002; }
.card .large { font-size: 17px; } .card .small { font-size: 12px; } .card .bolder { font-weight: 700; }
.card .subtle { color: #616161; } .card .attention { color: #c4314b; } .card .good { color: #237b4b; }
.card .warning { color: #835c00; } .card .accent { color: #4f52b2; }
.card .monospace { font: 13px 'DejaVu Sans Mono', monospace; background: #f3f2f1; }
.card button { font: 13px 'Segoe UI', Lato, sans-serif; border: 1px solid #d1d1d1; background: #fff;
               border-radius: 4px; padding: 5px 14px; margin-top: 8px; }
"""


def page(messages: list[Mapping[str, Any]]) -> str:
    """Return the page of one channel."""
    body = "".join(
        _reply(message) if message["is"] == "a reply" else _message(message) for message in messages
    )
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}"


def _message(message: Mapping[str, Any]) -> str:
    head = "".join(f"<div class=head>{_plain(block['text']['text'])}</div>" for block in message["blocks"])
    inside = "".join(
        f"<div class=bar style='border-color:{part['color']}'>{''.join(_blocks(part['blocks']))}</div>"
        for part in message["attachments"]
    )
    who = "<span class=who>dq</span><span class=app>APP</span><span class=at>6:32 AM</span>"
    return f"<div class=message><div class=icon>dq</div><div>{who}{head}{inside}</div></div>"


def _reply(message: Mapping[str, Any]) -> str:
    return f"<div class=reply><b>in the thread</b>{_marked(message['text'])}</div>"


def _blocks(blocks: list[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block["type"] == "context":
            context = "".join(_marked(element["text"]) for element in block["elements"])
            yield f"<div class=context>{context}</div>"
        elif "fields" in block:
            fields = "".join(f"<div>{_marked(element['text'])}</div>" for element in block["fields"])
            yield f"<div class=fields>{fields}</div>"
        else:
            yield f"<div class=section>{_marked(block['text']['text'])}</div>"


def _plain(text: str) -> str:
    return html.escape(text)


def _marked(text: str) -> str:
    """Slack's mrkdwn, as far as messages of ours use it; it comes with its entities escaped."""
    text = re.sub(r"```(.*?)```", r"<pre>\1</pre>", text, flags=re.DOTALL)
    text = re.sub(r"<(https?://[^>|]+)>", r"<a>\1</a>", text)
    text = re.sub(r"<@\w+>", "<span class=call>@ana</span>", text)
    text = re.sub(r"(?m)^\*([^*\n]+)\*", r"<b>\1</b>", text)
    return text.replace("\n<pre>", "<pre>").replace("</b>\n", "</b><br>")


def mails(mails_: list[Mapping[str, str]]) -> str:
    """Return the page of mails, whose bodies are HTML already."""
    body = "".join(
        f"<div class=mail><div class=subject>{_plain(mail['subject'])}"
        f"<div class=from>dq@acme.example to ana@acme.example</div></div>{mail['html']}</div>"
        for mail in mails_
    )
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}"


def cards(cards_: list[Mapping[str, Any]]) -> str:
    """Return the page of adaptive cards."""
    body = "".join(f"<div class=card>{''.join(_card(card))}</div>" for card in cards_)
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}"


def _card(card: Mapping[str, Any]) -> Iterator[str]:
    for block in card["body"]:
        runs = "".join(
            f"<span class='{_looks(run)}'>{_plain(run['text'])}</span>" for run in block["inlines"]
        )
        yield f"<div style='white-space:pre-wrap'>{runs}</div>"
    for action in card.get("actions", ()):
        yield f"<button>{_plain(action['title'])}</button>"


_LOOKS = ("size", "weight", "color", "fontType")


def _looks(run: Mapping[str, Any]) -> str:
    subtle = ["subtle"] if run.get("isSubtle") else []
    return " ".join([*(str(run[name]) for name in _LOOKS if name in run), *subtle])


def draw(name: str, text: str, height: int) -> None:
    """Writes the picture of a page."""
    names = ("chromium", "chromium-browser", "chromium-headless-shell")
    browser = next((path for candidate in names if (path := shutil.which(candidate))), None)
    if browser is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(text)
        subprocess.run(
            [
                *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *(f"--window-size={WIDTH},{height}", f"--screenshot={PICTURES / name}.png", file.as_uri()),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for picture, (golden, height) in SHOWN.items():
        messages = json.loads((GOLDEN / f"{golden}.slack.json").read_text())
        in_channel = [message for message in messages if message["in"] == "#orders-alerts"]
        # The thread of a storm holds each of its messages as they are by themselves.
        draw(picture, page(in_channel[:1] if picture == "storm" else in_channel), height)
    # The first one is of what was over before the story begins.
    draw("mail", mails(json.loads((GOLDEN / "late.email.json").read_text())[1:]), MAIL_HEIGHT)
    draw("teams", cards(json.loads((GOLDEN / "late.teams.json").read_text())[1:]), CARD_HEIGHT)
    portal(PICTURES)
