"""Slack's answers and what they mean for a message: one table.

Sources: docs.slack.dev/reference/methods/chat.postMessage and chat.update (errors), and
docs.slack.dev/apis/web-api/rate-limits. A code that is not here comes with `ok: false`, so nothing was
sent: it counts as a broken route, and somebody else is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dq.alerts.channel import Ambiguous, Blockage, Frozen, Gone, NotSent, Rejected
from dq.alerts.channels._http import seconds

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
