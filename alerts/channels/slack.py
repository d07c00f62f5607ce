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
    ANSWERS,
    ButtonAction,
    Capabilities,
    Channel,
    ChannelHealth,
    ChannelSetting,
    FailureScope,
    Interaction,
    LookupMiss,
    LookupResult,
    MessageNotEditable,
    MessageNotFound,
    MessageRef,
    PermanentFailure,
    RetryableFailure,
    Sender,
    SendResult,
    Sent,
    UnconfirmedSend,
)
from dq.alerts.channels._http import parse_retry_after
from dq.alerts.incident import DIGEST_CONTRACT, IncidentState
from dq.alerts.message import (
    COMMAND,
    OWNER,
    PRODUCT,
    SINCE,
    Message,
    colour,
    cut,
    headline,
    promise_fact,
    repeat_lines,
    step_lines,
    text_lines,
)
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.escaping import slack
from dq.contracts.install import require_extras
from dq.contracts.outcome import UsageError, one_line

if TYPE_CHECKING:
    from slack_sdk import WebClient


# Slack's error codes and their failures: one table.
#
# Sources: docs.slack.dev/reference/methods/chat.postMessage and chat.update (errors), and
# docs.slack.dev/apis/web-api/rate-limits. An unlisted code comes with `ok: false`, so nothing was sent: it
# counts as a route failure, and the fallback is notified.

Failure = RetryableFailure | UnconfirmedSend | PermanentFailure | MessageNotFound | MessageNotEditable


def _permanent_failure(scope: FailureScope) -> Callable[[str], Failure]:
    return lambda code: PermanentFailure(code, scope)


_CODES_BY_FAILURE: Mapping[Callable[[str], Failure], str] = {
    # According to Slack, some of these may have partly succeeded.
    UnconfirmedSend: """
        fatal_error internal_error request_timeout service_unavailable duplicate_message_not_found
        duplicate_channel_not_found update_failed
    """,
    RetryableFailure: "ratelimited rate_limited message_limit_exceeded team_added_to_org accesslimited",
    _permanent_failure(FailureScope.MESSAGE): """
        invalid_blocks invalid_blocks_format invalid_attachments msg_too_long msg_blocks_too_long
        too_many_attachments no_text block_mismatch metadata_too_large invalid_metadata_format
        invalid_metadata_schema metadata_must_be_sent_from_app
    """,
    _permanent_failure(FailureScope.ROUTE): """
        channel_not_found is_archived not_in_channel restricted_action restricted_action_read_only_channel
        restricted_action_thread_only_channel restricted_action_non_threadable_channel
        restricted_action_thread_locked cannot_reply_to_message messages_tab_disabled
    """,
    _permanent_failure(FailureScope.CHANNEL): """
        invalid_auth not_authed token_revoked token_expired account_inactive missing_scope no_permission
        org_login_required team_access_not_granted ekm_access_denied access_denied not_allowed_token_type
        two_factor_setup_required enterprise_is_restricted team_not_found
    """,
    MessageNotFound: "message_not_found thread_not_found",
    MessageNotEditable: "cant_update_message edit_window_closed",
}
FAILURE_BY_CODE: Mapping[str, Callable[[str], Failure]] = {
    code: answer for answer, codes in _CODES_BY_FAILURE.items() for code in codes.split()
}

# Other limits apply to one Slack channel.
_WORKSPACE_LIMITS = ("message_limit_exceeded", "team_added_to_org", "accesslimited")

_CODE = re.compile(r"[a-z][a-z0-9_]*")


def classify(status: int, code: str, retry_after: str | None) -> Failure:
    """Return the failure of a response without `ok: true`, by HTTP status, error code and Retry-After
    header.
    """
    if status == 429 or FAILURE_BY_CODE.get(code) is RetryableFailure:
        scope = FailureScope.CHANNEL if code in _WORKSPACE_LIMITS else FailureScope.ROUTE
        return RetryableFailure(code or "HTTP 429", parse_retry_after(retry_after), scope)
    if 300 <= status < 400:
        # The other host would receive the token.
        return PermanentFailure(
            f"HTTP {status} redirects to another URL; dq does not follow redirects", FailureScope.CHANNEL
        )
    if status >= 500:
        return UnconfirmedSend(f"HTTP {status}")
    if not _CODE.fullmatch(code):
        # A proxy responded instead of Slack; its text is not logged.
        return UnconfirmedSend(f"HTTP {status} without Slack's response")
    return FAILURE_BY_CODE.get(code, _permanent_failure(FailureScope.ROUTE))(code)


# Not an incoming webhook: it returns no ts, so messages could be neither updated nor looked up.
# The bot needs the scopes chat:write, channels:history and groups:history, and channels:read and groups:read
# if routes name channels by '#name'.

TIMEOUT_SECONDS = 10
_BASE_URL = "https://slack.com/api/"
_EVENT = "dq_incident"
_PAGES, _PAGE_SIZE = 20, 200
# The bot's scopes, and the consequence if one is missing.
_SCOPES: Mapping[str, str] = {
    "chat:write": "nothing can be sent",
    "channels:history": "after a dropped connection a message may come twice",
    "groups:history": "after a dropped connection a message in a private channel may come twice",
    "channels:read": "public channels cannot be looked up by '#name'",
    "groups:read": "private channels cannot be looked up by '#name'",
}
_CHANNEL_ID = re.compile(r"[CGD][A-Z0-9]{7,}")

# Disables automatic mentions and links, which chat.update creates by default.
_NO_PARSING = {"parse": "none", "link_names": False}

# Raised before the request is sent: unknown host, connection refused, or invalid certificate.
_NEVER_LEFT = (gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError)

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Slack:
    """Sends through slack-sdk. `ids` caches Slack's channel ids by name. `buttons`: a listener is
    configured.
    """

    client: WebClient = field(repr=False)
    buttons: bool = False
    ids: dict[str, str] = field(default_factory=dict, repr=False)

    def create(self, target: str, message: Message, key: str, parent: MessageRef | None = None) -> SendResult:
        to = {"channel": parent.place, "thread_ts": parent.root} if parent else {"channel": target}
        # Messages in the thread of a digest have no mentions.
        return self._post(to, self._rich(replace(message, mentions=()) if parent else message), message, key)

    def reply(self, receipt: MessageRef, message: Message, key: str) -> SendResult:
        to = {"channel": receipt.place, "thread_ts": receipt.root}
        return self._post(to, reply_body(message), message, key)

    def update(self, receipt: MessageRef, message: Message) -> SendResult:
        # Without metadata, which stays as posted.
        to = {"channel": receipt.place, "ts": receipt.reference}
        return self._send("chat.update", to, self._rich(message), message)

    def find(self, target: str, key: str, since: datetime, root: MessageRef | None) -> LookupResult:
        channel_id = root.place if root else self._channel_id(target)
        if not isinstance(channel_id, str):
            return channel_id
        method = "conversations.replies" if root else "conversations.history"
        query: dict[str, object] = {"channel": channel_id, "include_all_metadata": True, "limit": _PAGE_SIZE}
        query |= {"oldest": f"{since.timestamp():.6f}"} | ({"ts": root.root} if root else {})
        for page in self._pages(method, query):
            if not isinstance(page, Mapping):
                return _lookup_failure(page)
            for message in page.get("messages", ()):
                if message.get("metadata", {}).get("event_payload", {}).get("key") == key:
                    return Sent(MessageRef(channel_id, str(message["ts"]), root.root if root else ""))
            if not _next_cursor(page):
                return LookupMiss()
        return UnconfirmedSend(f"more than {_PAGES * _PAGE_SIZE} messages to look through")

    def retract(self, receipt: MessageRef) -> None:
        self._call("chat.delete", json={"channel": receipt.place, "ts": receipt.reference})

    def workspace_and_scopes(self) -> tuple[str, frozenset[str] | None] | Failure:
        """Return the token's workspace and the bot's scopes, None if unknown."""
        answer = self._ask("auth.test", params={})
        if not isinstance(answer, tuple):
            return answer
        data, headers = answer
        scopes = headers.get("x-oauth-scopes")
        names = None if scopes is None else frozenset(scope.strip() for scope in scopes.split(","))
        return one_line(str(data.get("team", ""))), names

    def _rich(self, message: Message) -> Data:
        return rich(message, actions(message) if self.buttons else ())

    def _post(self, to: Mapping[str, str], body: Data, message: Message, key: str) -> SendResult:
        payload = {"incident": message.incident, "key": key, "revision": message.revision}
        metadata = {
            "metadata": {"event_type": _EVENT, "event_payload": payload},
            # Slack does not guarantee deduplication by this id.
            "client_msg_id": key,
            "unfurl_links": False,
            "unfurl_media": False,
        }
        return self._send("chat.postMessage", {**to, **metadata}, body, message)

    def _send(self, method: str, to: Mapping[str, object], body: Data, message: Message) -> SendResult:
        data = self._call(method, json={**to, **_NO_PARSING, **body})
        note = ""
        if isinstance(data, PermanentFailure) and data.scope is FailureScope.MESSAGE:
            # Slack rejects the blocks: send plain text instead.
            note = f"sent as plain text, because Slack said {data.reason}"
            # Rejected metadata is omitted too; the message cannot be looked up then.
            rejected_keys = {"metadata"} if "metadata" in data.reason else set()
            arguments = {name: value for name, value in to.items() if name not in rejected_keys}
            data = self._call(method, json={**arguments, **_NO_PARSING, **plain(message)})
        if not isinstance(data, Mapping):
            return data
        receipt = MessageRef(str(data["channel"]), str(data["ts"]), str(to.get("thread_ts", "")))
        self.ids[str(to["channel"])] = receipt.place
        return Sent(receipt, note)

    def _channel_id(self, target: str) -> str | LookupResult:
        """Return Slack's id of a channel, which is needed to read its history."""
        if _CHANNEL_ID.fullmatch(target):
            return target
        query: dict[str, object] = {"types": "public_channel,private_channel", "limit": 1000}
        for page in self._pages("conversations.list", query) if target not in self.ids else ():
            if not isinstance(page, Mapping):
                return _lookup_failure(page)
            for channel in page["channels"]:
                self.ids[f"#{channel['name']}"] = self.ids[channel["name"]] = channel["id"]
            if target in self.ids:
                break
        return self.ids.get(
            target, PermanentFailure(f"no channel {target!r} in Slack's list", FailureScope.ROUTE)
        )

    def _pages(self, method: str, query: Mapping[str, object]) -> Iterator[Data | Failure]:
        """Yield the pages of a list, at most `_PAGES`; a failure is the last item."""
        cursor: Mapping[str, object] = {}
        for _ in range(_PAGES):
            page = self._call(method, params={**query, **cursor})
            yield page
            if not isinstance(page, Mapping) or not _next_cursor(page):
                return
            cursor = {"cursor": _next_cursor(page)}

    def _call(self, method: str, **arguments: Mapping[str, object]) -> Data | Failure:
        """Return the data of a response with `ok: true`, or the failure."""
        answer = self._ask(method, **arguments)
        return answer[0] if isinstance(answer, tuple) else answer

    def _ask(
        self, method: str, **arguments: Mapping[str, object]
    ) -> tuple[Data, Mapping[str, str]] | Failure:
        """Call a method of the Web API; return data and headers of the answer, or the failure.

        Header names are in lower case.
        """
        from slack_sdk.errors import SlackApiError

        try:
            answer = self.client.api_call(method, **arguments)  # type: ignore[arg-type]  # json or params
        except SlackApiError as error:
            response = error.response
            data = response.data if isinstance(response.data, dict) else {}
            retry_after = _lower_case_names(response.headers).get("retry-after")
            return classify(response.status_code, str(data.get("error", "")), retry_after)
        except URLError as error:
            name = type(error.reason).__name__
            return RetryableFailure(name) if isinstance(error.reason, _NEVER_LEFT) else UnconfirmedSend(name)
        except (OSError, HTTPException, ValueError) as error:  # dropped, timed out, or no text at all
            return UnconfirmedSend(type(error).__name__)
        if not isinstance(answer.data, dict):
            return UnconfirmedSend("response is not a JSON object")
        return answer.data, _lower_case_names(answer.headers)


def _lookup_failure(failure: Failure) -> LookupResult:
    """Return the result of a failed lookup: retryable failures as they are, others as a channel failure."""
    return (
        failure
        if isinstance(failure, RetryableFailure | UnconfirmedSend)
        else PermanentFailure(failure.reason, FailureScope.CHANNEL)
    )


def _lower_case_names(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in (headers or {}).items()}


def _next_cursor(page: Data) -> str:
    return str(page.get("response_metadata", {}).get("next_cursor", ""))


def open_slack(settings: Mapping[str, str], write: Callable[[str], object]) -> Sender:
    """Return a sender for one workspace. `write` is not used."""
    token = settings.get("token", "").strip()
    if not token:
        raise UsageError("Alerts in Slack need a bot token.", "Set SLACK_BOT_TOKEN, or SLACK_BOT_TOKEN_FILE.")
    with require_extras("Alerts in Slack need slack-sdk", "slack"):
        from dq.alerts.channels._slack_sdk import checked_base_url, create_client
    base_url = checked_base_url(settings.get("base_url") or _BASE_URL)
    seconds = _seconds(settings.get("timeout_seconds", ""))
    # An invalid app token only disables the buttons.
    return Slack(create_client(token, base_url, seconds), has_app_token(settings))


def listen(
    settings: Mapping[str, str],
    handle_interaction: Callable[[Interaction], str],
    log: Callable[[str], object],
) -> Callable[[], None] | None:
    """Listen for button interactions if there is an app token. Raises as `open_slack`."""
    token = app_token(settings)
    if not token:
        return None
    sender = open_slack(settings, str)
    assert isinstance(sender, Slack)
    from dq.alerts.channels._slack_sdk import SlackListener

    return SlackListener(sender.client, token, handle_interaction, log).start()


def inspect(settings: Mapping[str, str]) -> list[ChannelHealth]:
    """Check that Slack accepts the token, and that the bot has the required scopes."""
    sender = open_slack(settings, str)
    assert isinstance(sender, Slack)
    app_token(settings)
    identity = sender.workspace_and_scopes()
    if not isinstance(identity, tuple):
        return [ChannelHealth(False, f"token check failed: {identity.reason}", "Fix SLACK_BOT_TOKEN.")]
    team, scopes = identity
    if scopes is None:
        return [ChannelHealth(None, f"accepts the token for {team}; its scopes are unknown")]
    missing = [scope for scope in _SCOPES if scope not in scopes]
    if not missing:
        return [ChannelHealth(True, f"accepts the token for {team}; all scopes are granted")]
    hint = f"Add {', '.join(missing)} to the bot's scopes, and install the app again."
    return [
        ChannelHealth(
            None if "chat:write" in scopes else False, f"{scope} is missing: {_SCOPES[scope]}", hint
        )
        for scope in missing
    ]


def _seconds(text: str) -> float:
    try:
        seconds = float(text or TIMEOUT_SECONDS)
    except ValueError:
        seconds = 0.0
    # A longer timeout would exceed the outbox lease.
    if not 0 < seconds <= 30:
        raise UsageError(f"Invalid timeout for Slack: {text!r} seconds.", "Write a number up to 30.")
    return seconds


CHANNEL = Channel(
    id="slack",
    summary="One message per incident in a Slack channel, its steps in the thread.",
    # docs.slack.dev/apis/web-api/rate-limits: one message a second for each channel.
    can=Capabilities(thread=True, update=True, reconcile=True, uses_digests=True, pace_seconds=1.0),
    make=open_slack,
    settings=(
        ChannelSetting("token", "SLACK_BOT_TOKEN", "The bot's token, xoxb-…", secret=True),
        ChannelSetting(
            "app_token", "SLACK_APP_TOKEN", "The app's token, xapp-…, for buttons below alerts.", secret=True
        ),
        ChannelSetting("base_url", "DQ_SLACK_URL", "URL of the Web API, e.g. of a proxy."),
        ChannelSetting(
            "timeout_seconds", "DQ_SLACK_TIMEOUT_SECONDS", f"Timeout of a call; {TIMEOUT_SECONDS} by default."
        ),
    ),
    inspect=inspect,
    listen=listen,
)


# A message in Slack's blocks, within Slack's limits (docs.slack.dev/reference/block-kit/blocks).

HEADER, SECTION, PLAIN = 150, 3000, 3900
# Above about 13,200 characters in total Slack responds msg_blocks_too_long, which is not documented.
_FACT, _CONTEXT = 600, 1500

# Short facts are shown side by side, at most ten.
_SIDE_BY_SIDE = ("promised", SINCE, "delivered", "usually", "last on time", "blocks", "still missing", OWNER)
_MENTION = re.compile("[UWS][A-Z0-9]{5,20}")


def rich(message: Message, actions: Sequence[dict[str, object]] = ()) -> dict[str, object]:
    """Return a message as blocks: header, facts with a bar in the message's colour, and a line of steps and
    budget.

    A command is a separate block, to be copied. Mentions of the contract are next to the owner. `actions` are
    blocks of buttons.
    """
    promise = [f"{label} {name}" for label, name in promise_fact(message)]
    small_lines = [*message.steps, message.budget, *promise, *repeat_lines(message)]
    context = slack("\n".join(line for line in small_lines if line), _CONTEXT)
    blocks = [*_blocks(message), *actions, {"type": "context", "elements": [_text(context)]}]
    title = {"type": "plain_text", "text": cut(headline(message), HEADER), "emoji": False}
    return {
        # Shown in notifications.
        "text": slack(headline(message), PLAIN),
        "blocks": [{"type": "header", "text": title}],
        "attachments": [{"color": colour(message), "blocks": blocks}],
    }


def _blocks(message: Message) -> Iterator[dict[str, object]]:
    facts = dict(message.facts)
    if product := facts.pop(PRODUCT, ""):
        yield from _sections([slack(product, _FACT)])
    mentions = " ".join(_mention(user_id) for user_id in message.mentions if _MENTION.fullmatch(user_id))
    if mentions and OWNER not in facts:
        facts[OWNER] = ""
    short_facts = [(label, facts.pop(label)) for label in _SIDE_BY_SIDE if label in facts]
    if short_facts:
        texts = [
            (label, f"{slack(value, _FACT)} {mentions if label == OWNER else ''}")
            for label, value in short_facts
        ]
        fields = [_text(f"*{label}*\n{value.strip()}") for label, value in texts]
        yield {"type": "section", "fields": fields}
    command = facts.pop(COMMAND, "")
    # A backtick in the command would end the code block.
    command_block = (
        f"```{slack(command, _FACT)}```" if command and "`" not in command else slack(command, _FACT)
    )
    fact_lines = [f"*{slack(label, 100)}*  {_value(value)}" for label, value in facts.items()]
    yield from _sections([*fact_lines, *([command_block] if command_block else [])])


def _mention(ident: str) -> str:
    return f"<!subteam^{ident}>" if ident.startswith("S") else f"<@{ident}>"


def plain(message: Message) -> dict[str, object]:
    """Return a message as plain text, for when Slack rejects the blocks."""
    text = "\n".join([headline(message), *text_lines(message)])
    return {"text": slack(text, PLAIN), "blocks": [], "attachments": []}


def reply_body(message: Message) -> dict[str, object]:
    """Return a thread reply about one step."""
    return {"text": slack("\n".join(step_lines(message)), PLAIN)}


def _sections(lines: list[str]) -> list[dict[str, object]]:
    pages = [""]
    for line in lines:
        if len(pages[-1]) + len(line) + 1 > SECTION:
            pages.append("")
        pages[-1] = f"{pages[-1]}\n{line}".strip("\n")
    return [{"type": "section", "text": _text(page)} for page in pages if page]


def _text(text: str) -> dict[str, object]:
    # Without `verbatim` Slack creates mentions and links: @channel would notify everyone.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _value(value: str) -> str:
    """Return the value of a fact; a URL becomes a link."""
    escaped = slack(value, _FACT)
    return f"<{escaped}>" if web_address(value, WEB) and not escaped.endswith("…") else escaped


# Buttons below an alert in Slack (docs.slack.dev, block_actions payloads).

_LABELS = {
    ButtonAction.ACK: "Acknowledge",
    ButtonAction.SILENCE: "Silence for 2 hours",
    ButtonAction.REAL: "Real",
    ButtonAction.NOT_REAL: "Not real",
}


def has_app_token(settings: Mapping[str, str]) -> bool:
    """True if there is an app token with a valid prefix."""
    return settings.get("app_token", "").strip().startswith("xapp-")


def app_token(settings: Mapping[str, str]) -> str:
    """Return the app token, '' if none is set. Raises UsageError for another kind of token."""
    token = settings.get("app_token", "").strip()
    if token and not has_app_token(settings):
        raise UsageError("SLACK_APP_TOKEN is not an app token.", "Write one that begins with xapp-.")
    return token


def actions(message: Message) -> list[dict[str, object]]:
    """Return the buttons of an open, unacknowledged incident, and the answers to unusual numbers."""
    # Digests cannot be silenced: the next one would be a different incident.
    is_digest = message.key.contract == DIGEST_CONTRACT
    buttons = [ButtonAction.ACK, *([] if is_digest else [ButtonAction.SILENCE])]
    if message.state is not IncidentState.OPEN:
        buttons = []
    if not message.state.is_closed and any(label.endswith("unusual") for label, _ in message.facts):
        buttons += ANSWERS
    if not buttons:
        return []
    elements = [
        {
            "type": "button",
            "action_id": f"dq_{button}",
            "text": {"type": "plain_text", "text": _LABELS[button], "emoji": False},
            "value": message.incident,
        }
        for button in buttons
    ]
    return [{"type": "actions", "block_id": "dq", "elements": elements}]
