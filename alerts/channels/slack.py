"""Alerts in Slack over the Web API: one root message per incident, its steps in the thread."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from http.client import HTTPException
from socket import gaierror
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

from dq.alerts.channel import (
    Ambiguous,
    Answer,
    Blockage,
    Capabilities,
    Channel,
    ChannelSetting,
    Frozen,
    Gone,
    Inspection,
    Look,
    MessagePlace,
    NotHeld,
    NotSent,
    Press,
    PressedButton,
    Rejected,
    Sender,
    Sent,
)
from dq.alerts.channels._http import seconds
from dq.alerts.incident import STORM, IncidentState
from dq.alerts.message import (
    COMMAND,
    OWNER,
    PRODUCT,
    SINCE,
    Message,
    colour,
    cut,
    headline,
    lines,
    news,
    promise,
    repeat_note,
)
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.escaping import slack
from dq.contracts.install import needing
from dq.contracts.outcome import UsageError, one_line

if TYPE_CHECKING:
    from slack_sdk import WebClient


# Slack's answers and what they mean for a message: one table.
#
# Sources: docs.slack.dev/reference/methods/chat.postMessage and chat.update (errors), and
# docs.slack.dev/apis/web-api/rate-limits. A code that is not here comes with `ok: false`, so nothing was
# sent: it counts as a broken route, and somebody else is told.

Failure = NotSent | Ambiguous | Rejected | Gone | Frozen


def _refused(scope: Blockage) -> Callable[[str], Failure]:
    return lambda code: Rejected(code, scope)


_MEANING: Mapping[Callable[[str], Failure], str] = {
    # By Slack's own words some of these may have partly succeeded.
    Ambiguous: """
        fatal_error internal_error request_timeout service_unavailable duplicate_message_not_found
        duplicate_channel_not_found update_failed
    """,
    NotSent: "ratelimited rate_limited message_limit_exceeded team_added_to_org accesslimited",
    _refused(Blockage.MESSAGE): """
        invalid_blocks invalid_blocks_format invalid_attachments msg_too_long msg_blocks_too_long
        too_many_attachments no_text block_mismatch metadata_too_large invalid_metadata_format
        invalid_metadata_schema metadata_must_be_sent_from_app
    """,
    _refused(Blockage.ROUTE): """
        channel_not_found is_archived not_in_channel restricted_action restricted_action_read_only_channel
        restricted_action_thread_only_channel restricted_action_non_threadable_channel
        restricted_action_thread_locked cannot_reply_to_message messages_tab_disabled
    """,
    _refused(Blockage.CHANNEL): """
        invalid_auth not_authed token_revoked token_expired account_inactive missing_scope no_permission
        org_login_required team_access_not_granted ekm_access_denied access_denied not_allowed_token_type
        two_factor_setup_required enterprise_is_restricted team_not_found
    """,
    Gone: "message_not_found thread_not_found",
    Frozen: "cant_update_message edit_window_closed",
}
ANSWERS: Mapping[str, Callable[[str], Failure]] = {
    code: answer for answer, codes in _MEANING.items() for code in codes.split()
}

# Other limits are of one Slack channel.
_OF_THE_WORKSPACE = ("message_limit_exceeded", "team_added_to_org", "accesslimited")

_CODE = re.compile(r"[a-z][a-z0-9_]*")


def classify(status: int, code: str, retry_after: str | None) -> Failure:
    """What a response without `ok: true` means: by HTTP status, error code and Retry-After header."""
    if status == 429 or ANSWERS.get(code) is NotSent:
        concerns = Blockage.CHANNEL if code in _OF_THE_WORKSPACE else Blockage.ROUTE
        return NotSent(code or "HTTP 429", seconds(retry_after), concerns)
    if 300 <= status < 400:
        # Whoever is there would get the token.
        return Rejected(f"HTTP {status} sends to another address, which dq does not follow", Blockage.CHANNEL)
    if status >= 500:
        return Ambiguous(f"HTTP {status}")
    if not _CODE.fullmatch(code):
        # Something between us and Slack answered; its words are not for our logs.
        return Ambiguous(f"HTTP {status} and no answer of Slack's")
    return ANSWERS.get(code, _refused(Blockage.ROUTE))(code)


# An incoming webhook would not do: it gives no ts, so its message could be neither changed nor found again.
# The bot needs the scopes chat:write, channels:history and groups:history, and channels:read and groups:read
# where routes name channels by '#name'.

TIMEOUT_SECONDS = 10
_BASE_URL = "https://slack.com/api/"
_EVENT = "dq_incident"
_PAGES, _PAGE_SIZE = 20, 200
# What the bot may do, and what is lost without it.
_SCOPES: Mapping[str, str] = {
    "chat:write": "nothing can be sent",
    "channels:history": "after a dropped connection a message may come twice",
    "groups:history": "after a dropped connection a message in a private channel may come twice",
    "channels:read": "the channels of '#name' cannot be looked into",
    "groups:read": "the private channels of '#name' cannot be looked into",
}
_CHANNEL_ID = re.compile(r"[CGD][A-Z0-9]{7,}")

# Slack makes no mention or link of its own out of a text; without a word it would for chat.update.
_AS_WRITTEN = {"parse": "none", "link_names": False}

# Raised before the request left us: the host is unknown, nobody listens, or it is not who it should be.
_NEVER_LEFT = (gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError)

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Slack:
    """Sends through slack-sdk; `ids` are Slack's channel ids by name, learnt on the way.

    `buttons`: somebody listens to them.
    """

    client: WebClient = field(repr=False)
    buttons: bool = False
    ids: dict[str, str] = field(default_factory=dict, repr=False)

    def create(self, target: str, message: Message, key: str, below: MessagePlace | None = None) -> Answer:
        to = {"channel": below.place, "thread_ts": below.root} if below else {"channel": target}
        # Where it stands in the thread of a digest, it calls nobody: it is one of many.
        return self._post(to, self._rich(replace(message, mentions=()) if below else message), message, key)

    def reply(self, receipt: MessagePlace, message: Message, key: str) -> Answer:
        to = {"channel": receipt.place, "thread_ts": receipt.root}
        return self._post(to, reply(message), message, key)

    def update(self, receipt: MessagePlace, message: Message) -> Answer:
        # Without metadata, which then stays as it was posted.
        to = {"channel": receipt.place, "ts": receipt.reference}
        return self._say("chat.update", to, self._rich(message), message)

    def find(self, target: str, key: str, since: datetime, root: MessagePlace | None) -> Look:
        place = root.place if root else self._id_of(target)
        if not isinstance(place, str):
            return place
        method = "conversations.replies" if root else "conversations.history"
        query: dict[str, object] = {"channel": place, "include_all_metadata": True, "limit": _PAGE_SIZE}
        query |= {"oldest": f"{since.timestamp():.6f}"} | ({"ts": root.root} if root else {})
        for page in self._pages(method, query):
            if not isinstance(page, Mapping):
                return _cannot_look(page)
            for message in page.get("messages", ()):
                if message.get("metadata", {}).get("event_payload", {}).get("key") == key:
                    return Sent(MessagePlace(place, str(message["ts"]), root.root if root else ""))
            if not _next(page):
                return NotHeld()
        return Ambiguous(f"more than {_PAGES * _PAGE_SIZE} messages to look through")

    def retract(self, receipt: MessagePlace) -> None:
        self._call("chat.delete", json={"channel": receipt.place, "ts": receipt.reference})

    def introduce(self) -> tuple[str, frozenset[str] | None] | Failure:
        """The workspace that the token is of, and the bot's scopes if Slack says them."""
        answer = self._ask("auth.test", params={})
        if not isinstance(answer, tuple):
            return answer
        said, headers = answer
        scopes = headers.get("x-oauth-scopes")
        names = None if scopes is None else frozenset(one.strip() for one in scopes.split(","))
        return one_line(str(said.get("team", ""))), names

    def _rich(self, message: Message) -> Data:
        return rich(message, actions(message) if self.buttons else ())

    def _post(self, to: Mapping[str, str], body: Data, message: Message, key: str) -> Answer:
        payload = {"incident": message.incident, "key": key, "revision": message.revision}
        mark = {
            "metadata": {"event_type": _EVENT, "event_payload": payload},
            # Slack does not promise to drop a second one of the same id; it costs nothing to ask.
            "client_msg_id": key,
            "unfurl_links": False,
            "unfurl_media": False,
        }
        return self._say("chat.postMessage", {**to, **mark}, body, message)

    def _say(self, method: str, to: Mapping[str, object], body: Data, message: Message) -> Answer:
        data = self._call(method, json={**to, **_AS_WRITTEN, **body})
        note = ""
        if isinstance(data, Rejected) and data.scope is Blockage.MESSAGE:
            # Our own fault: Slack does not take the blocks. The words must arrive all the same.
            note = f"sent as plain text, because Slack said {data.reason}"
            # Without what it refuses, too: nobody can look for it then.
            refused = {"metadata"} if "metadata" in data.reason else set()
            bare = {name: value for name, value in to.items() if name not in refused}
            data = self._call(method, json={**bare, **_AS_WRITTEN, **plain(message)})
        if not isinstance(data, Mapping):
            return data
        receipt = MessagePlace(str(data["channel"]), str(data["ts"]), str(to.get("thread_ts", "")))
        self.ids[str(to["channel"])] = receipt.place
        return Sent(receipt, note)

    def _id_of(self, target: str) -> str | Look:
        """Slack's id of a channel, because history is read by id only."""
        if _CHANNEL_ID.fullmatch(target):
            return target
        query: dict[str, object] = {"types": "public_channel,private_channel", "limit": 1000}
        for page in self._pages("conversations.list", query) if target not in self.ids else ():
            if not isinstance(page, Mapping):
                return _cannot_look(page)
            for channel in page["channels"]:
                self.ids[f"#{channel['name']}"] = self.ids[channel["name"]] = channel["id"]
            if target in self.ids:
                break
        return self.ids.get(target, Rejected(f"no channel {target!r} in Slack's list", Blockage.ROUTE))

    def _pages(self, method: str, query: Mapping[str, object]) -> Iterator[Data | Failure]:
        """The pages of a list, at most `_PAGES`; the one that failed is the last."""
        cursor: Mapping[str, object] = {}
        for _ in range(_PAGES):
            page = self._call(method, params={**query, **cursor})
            yield page
            if not isinstance(page, Mapping) or not _next(page):
                return
            cursor = {"cursor": _next(page)}

    def _call(self, method: str, **arguments: Mapping[str, object]) -> Data | Failure:
        """What Slack says with `ok: true`, or what it means that it did not."""
        answer = self._ask(method, **arguments)
        return answer[0] if isinstance(answer, tuple) else answer

    def _ask(
        self, method: str, **arguments: Mapping[str, object]
    ) -> tuple[Data, Mapping[str, str]] | Failure:
        """The same, with the headers of the answer by their names in small letters."""
        from slack_sdk.errors import SlackApiError

        try:
            answer = self.client.api_call(method, **arguments)  # type: ignore[arg-type]  # json or params
        except SlackApiError as error:
            response = error.response
            said = response.data if isinstance(response.data, dict) else {}
            wait = _by_small_names(response.headers).get("retry-after")
            return classify(response.status_code, str(said.get("error", "")), wait)
        except URLError as error:
            name = type(error.reason).__name__
            return NotSent(name) if isinstance(error.reason, _NEVER_LEFT) else Ambiguous(name)
        except (OSError, HTTPException, ValueError) as error:  # dropped, timed out, or no text at all
            return Ambiguous(type(error).__name__)
        if not isinstance(answer.data, dict):
            return Ambiguous("an answer that is no JSON object")
        return answer.data, _by_small_names(answer.headers)


def _cannot_look(failure: Failure) -> Look:
    """A failed search: what is only late is tried again, everything else means that nobody can look."""
    return failure if isinstance(failure, NotSent | Ambiguous) else Rejected(failure.reason, Blockage.CHANNEL)


def _by_small_names(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in (headers or {}).items()}


def _next(page: Data) -> str:
    return str(page.get("response_metadata", {}).get("next_cursor", ""))


def open_slack(settings: Mapping[str, str], write: Callable[[str], object]) -> Sender:
    """A sender for one workspace. `write` is not used."""
    token = settings.get("token", "").strip()
    if not token:
        raise UsageError("Alerts in Slack need a bot token.", "Set SLACK_BOT_TOKEN, or SLACK_BOT_TOKEN_FILE.")
    with needing("Alerts in Slack need slack-sdk", "slack"):
        from dq.alerts.channels._slack_sdk import address, client
    base_url = address(settings.get("base_url") or _BASE_URL)
    seconds = _seconds(settings.get("timeout_seconds", ""))
    # A wrong one costs the buttons, and no alert.
    return Slack(client(token, base_url, seconds), has_app_token(settings))


def listen(
    settings: Mapping[str, str], press: Callable[[Press], str], note: Callable[[str], object]
) -> Callable[[], None] | None:
    """Hears the buttons, where there is a token of the app. Raises what `open_slack` raises."""
    token = app_token(settings)
    if not token:
        return None
    sender = open_slack(settings, str)
    assert isinstance(sender, Slack)
    from dq.alerts.channels._slack_sdk import SlackListener

    return SlackListener(sender.client, token, press, note).start()


def inspect(settings: Mapping[str, str]) -> list[Inspection]:
    """Whether Slack takes the token, and whether the bot may do what it has to."""
    sender = open_slack(settings, str)
    assert isinstance(sender, Slack)
    app_token(settings)
    said = sender.introduce()
    if not isinstance(said, tuple):
        return [Inspection(False, f"no answer that helps: {said.reason}", "Mend SLACK_BOT_TOKEN.")]
    team, scopes = said
    if scopes is None:
        return [Inspection(None, f"takes the token for {team}; its scopes are not known")]
    missing = [scope for scope in _SCOPES if scope not in scopes]
    if not missing:
        return [Inspection(True, f"takes the token for {team}; the scopes are there")]
    mend = f"Add {', '.join(missing)} to the bot's scopes, and install the app again."
    return [
        Inspection(None if "chat:write" in scopes else False, f"{scope} is missing: {_SCOPES[scope]}", mend)
        for scope in missing
    ]


def _seconds(said: str) -> float:
    try:
        seconds = float(said or TIMEOUT_SECONDS)
    except ValueError:
        seconds = 0.0
    # A longer one would outlive the lease of the outbox.
    if not 0 < seconds <= 30:
        raise UsageError(f"A call to Slack cannot take {said!r} seconds.", "Write a number up to 30.")
    return seconds


CHANNEL = Channel(
    id="slack",
    summary="A message per incident in a Slack channel, its steps in the thread.",
    # docs.slack.dev/apis/web-api/rate-limits: one message a second for each channel.
    can=Capabilities(thread=True, update=True, reconcile=True, folds=True, pace_seconds=1.0),
    make=open_slack,
    settings=(
        ChannelSetting("token", "SLACK_BOT_TOKEN", "The bot's token, xoxb-…", secret=True),
        ChannelSetting(
            "app_token", "SLACK_APP_TOKEN", "The app's token, xapp-…, for buttons below alerts.", secret=True
        ),
        ChannelSetting("base_url", "DQ_SLACK_URL", "Another address of the Web API, such as a proxy's."),
        ChannelSetting(
            "timeout_seconds", "DQ_SLACK_TIMEOUT_SECONDS", f"How long a call may take; {TIMEOUT_SECONDS}."
        ),
    ),
    inspect=inspect,
    listen=listen,
)


# A message in Slack's blocks, within Slack's limits (docs.slack.dev/reference/block-kit/blocks).

HEADER, SECTION, PLAIN = 150, 3000, 3900
# Beyond some 13,200 characters in all Slack says msg_blocks_too_long; it documents that nowhere.
_FACT, _CONTEXT = 600, 1500

# Short facts stand side by side, which Slack does for at most ten.
_SIDE_BY_SIDE = ("promised", SINCE, "delivered", "usually", "last good", "blocks", "still missing", OWNER)
_MENTION = re.compile("[UWS][A-Z0-9]{5,20}")


def rich(message: Message, actions: Sequence[dict[str, object]] = ()) -> dict[str, object]:
    """Header, facts beside a bar in the colour of the state, and a last line of steps and budget.

    A command stands by itself, as it is to be copied. Whom the contract names is called beside the owner.
    `actions` are blocks of buttons.
    """
    small = [*message.steps, message.budget, f"promise {promise(message)}", *repeat_note(message)]
    context = slack("\n".join(line for line in small if line), _CONTEXT)
    blocks = [*_blocks(message), *actions, {"type": "context", "elements": [_text(context)]}]
    title = {"type": "plain_text", "text": cut(headline(message), HEADER), "emoji": False}
    return {
        # What a notification on a phone shows.
        "text": slack(headline(message), PLAIN),
        "blocks": [{"type": "header", "text": title}],
        "attachments": [{"color": colour(message), "blocks": blocks}],
    }


def _blocks(message: Message) -> Iterator[dict[str, object]]:
    facts = dict(message.facts)
    if product := facts.pop(PRODUCT, ""):
        yield from _sections([slack(product, _FACT)])
    called = " ".join(_mention(one) for one in message.mentions if _MENTION.fullmatch(one))
    if called and OWNER not in facts:
        facts[OWNER] = ""
    beside = [(label, facts.pop(label)) for label in _SIDE_BY_SIDE if label in facts]
    if beside:
        said = [
            (label, f"{slack(value, _FACT)} {called if label == OWNER else ''}") for label, value in beside
        ]
        fields = [_text(f"*{label}*\n{value.strip()}") for label, value in said]
        yield {"type": "section", "fields": fields}
    command = facts.pop(COMMAND, "")
    # A sign of its own in the command would end the block.
    boxed = f"```{slack(command, _FACT)}```" if command and "`" not in command else slack(command, _FACT)
    rest = [f"*{slack(label, 100)}*  {_value(value)}" for label, value in facts.items()]
    yield from _sections([*rest, *([boxed] if boxed else [])])


def _mention(ident: str) -> str:
    return f"<!subteam^{ident}>" if ident.startswith("S") else f"<@{ident}>"


def plain(message: Message) -> dict[str, object]:
    """The same without blocks, for when Slack does not take them."""
    said = "\n".join([headline(message), *lines(message)])
    return {"text": slack(said, PLAIN), "blocks": [], "attachments": []}


def reply(message: Message) -> dict[str, object]:
    """One step, for the thread."""
    return {"text": slack("\n".join(news(message)), PLAIN)}


def _sections(said: list[str]) -> list[dict[str, object]]:
    pages = [""]
    for line in said:
        if len(pages[-1]) + len(line) + 1 > SECTION:
            pages.append("")
        pages[-1] = f"{pages[-1]}\n{line}".strip("\n")
    return [{"type": "section", "text": _text(page)} for page in pages if page]


def _text(text: str) -> dict[str, object]:
    # Without `verbatim` Slack looks for names and addresses in it: @channel would wake everybody.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _value(value: str) -> str:
    """A fact; one that is an address and nothing else is a link that shows its address."""
    wire = slack(value, _FACT)
    return f"<{wire}>" if web_address(value, WEB) and not wire.endswith("…") else wire


# Buttons below an alert in Slack (docs.slack.dev, block_actions payloads).

_LABELS = {PressedButton.ACK: "I am on it", PressedButton.SILENCE: "Silence for 2 hours"}


def has_app_token(settings: Mapping[str, str]) -> bool:
    """Whether somebody wants buttons, with a token that can be one of an app."""
    return settings.get("app_token", "").strip().startswith("xapp-")


def app_token(settings: Mapping[str, str]) -> str:
    """The token of the app, or '' where nobody wants buttons. Raises UsageError for another kind of token."""
    token = settings.get("app_token", "").strip()
    if token and not has_app_token(settings):
        raise UsageError("SLACK_APP_TOKEN is no token of an app.", "Write one that begins with xapp-.")
    return token


def actions(message: Message) -> list[dict[str, object]]:
    """The blocks of the buttons: below what is open and what nobody has taken yet."""
    if message.state is not IncidentState.OPEN:
        return []
    # Nobody silences a storm by one of its messages: what comes next would be another one.
    shown = [one for one in PressedButton if one is PressedButton.ACK or message.key.contract != STORM]
    elements = [
        {
            "type": "button",
            "action_id": f"dq_{one}",
            "text": {"type": "plain_text", "text": _LABELS[one], "emoji": False},
            "value": message.incident,
        }
        for one in shown
    ]
    return [{"type": "actions", "block_id": "dq", "elements": elements}]
