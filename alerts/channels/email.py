"""Alerts by email over SMTP: one thread for each incident, its steps as replies."""

from __future__ import annotations

import smtplib
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate

from dq.alerts import channel
from dq.alerts.channels._http import TIMEOUT_SECONDS, time_limit
from dq.alerts.message import (
    COMMAND,
    Message,
    colour,
    cut,
    facts_with_promise,
    footer_lines,
    headline,
    step_lines,
    text_lines,
)
from dq.contracts.access.access_policy import LOOPBACK, WEB, web_address
from dq.contracts.access.alert_target import target_problem
from dq.contracts.escaping import html
from dq.contracts.outcome import UsageError

# Messages as HTML that mail clients support: tables and inline styles, no external resources.


def html_page(message: Message, *, step: bool) -> str:
    """Return the full message as HTML, or only the headline and one `step`."""
    bar_colour = colour(message)
    small_lines = step_lines(message) if step else footer_lines(message)
    facts = [] if step else facts_with_promise(message)
    return "\n".join(
        [
            '<div style="font-family:sans-serif;font-size:14px">',
            f'<p style="border-left:6px solid {bar_colour};padding-left:8px;font-size:17px">'
            f"<b>{html(headline(message))}</b></p>",
            *(['<table style="font-size:14px">', *map(_row, facts), "</table>"] if facts else []),
            *(f"<p>{html(line)}</p>" for line in small_lines),
            "</div>",
        ]
    )


def _row(fact: tuple[str, str]) -> str:
    label, value = fact
    cell = html(value)
    if web_address(value, WEB):
        cell = f'<a href="{cell}">{cell}</a>'
    if label == COMMAND:
        cell = f'<code style="background:#f3f3f3;padding:2px 5px">{cell}</code>'
    label_style = "padding-right:12px;color:#616061;white-space:nowrap;vertical-align:top"
    return f'<tr><td style="{label_style}">{html(label)}</td><td>{cell}</td></tr>'


# SMTP.
#
# At-least-once: if the connection drops after DATA, delivery cannot be checked. A repeat has the same
# Message-ID, by which many mailboxes drop it. Sources: RFC 5321 (replies, size of addresses), RFC 5322 3.6.4
# (threads), RFC 3834 (Auto-Submitted).

SUBMISSION, SMTPS = 587, 465
# For the whole delivery; shorter than the outbox lease.
_LIMIT_SECONDS = 30.0
_SUBJECT = 180

Failure = channel.RetryableFailure | channel.UnconfirmedSend | channel.PermanentFailure


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The operator's mail server and the sender address."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def domain(self) -> str:
        """Domain of the sender address."""
        return self.sender.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Email:
    """Sends each message over a separate connection."""

    mailbox: Mailbox
    limit_seconds: float = _LIMIT_SECONDS
    now: Callable[[], float] = time.time

    def create(
        self, target: str, message: Message, key: str, parent: channel.MessageRef | None = None
    ) -> channel.SendResult:
        subject = cut(headline(message), _SUBJECT)
        text = "\n".join([headline(message), "", *text_lines(message)])
        return self._send(target, message, key, (subject, text), parent)

    def reply(self, receipt: channel.MessageRef, message: Message, key: str) -> channel.SendResult:
        text = "\n".join([headline(message), "", *step_lines(message)])
        return self._send(receipt.place, message, key, ("", text), receipt)

    def _send(
        self,
        target: str,
        message: Message,
        key: str,
        content: tuple[str, str],
        parent: channel.MessageRef | None,
    ) -> channel.SendResult:
        fault = target_problem("email", target)
        if fault is not None:
            return channel.PermanentFailure(f"{fault.message}. {fault.hint}", channel.FailureScope.ROUTE)
        subject, text = content
        # The subject of a thread never changes, because some clients group threads by subject.
        root, _, thread_subject = (parent.root if parent else "").partition(" ")
        message_id = f"<{key}@{self.mailbox.domain}>"
        mail = EmailMessage(policy=SMTP)
        mail["From"], mail["To"] = self.mailbox.sender, target
        mail["Subject"] = f"Re: {thread_subject}" if root else subject
        mail["Date"] = formatdate(self.now())
        mail["Message-ID"] = message_id
        if root:
            mail["In-Reply-To"] = mail["References"] = root
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-DQ-Incident"] = message.incident
        mail.set_content(text)
        mail.add_alternative(html_page(message, step=not subject), subtype="html")
        failure = _deliver(self.mailbox, target, mail, self.limit_seconds)
        if failure is not None:
            return failure
        return channel.Sent(
            channel.MessageRef(
                target, f"{message_id} {thread_subject or subject}", parent.root if parent else ""
            )
        )


def _deliver(mailbox: Mailbox, target: str, mail: EmailMessage, limit_seconds: float) -> Failure | None:
    """Deliver a mail to the server; return the failure, or None if it was accepted."""
    server = _unconnected_client(mailbox)
    try:
        with time_limit(lambda: server.sock, limit_seconds):
            failure = _connect(server, mailbox) or _greet(server, mailbox)
            failure = failure or _send_envelope(server, mailbox.sender, target)
            return failure or _send_data(server, mail)
    finally:
        server.close()


def _unconnected_client(mailbox: Mailbox) -> smtplib.SMTP:
    """Return an unconnected client, so that the time limit covers the connection too."""
    name, seconds = mailbox.domain, TIMEOUT_SECONDS
    if mailbox.port == SMTPS:
        context = ssl.create_default_context()
        client: smtplib.SMTP = smtplib.SMTP_SSL(local_hostname=name, timeout=seconds, context=context)
    else:
        client = smtplib.SMTP(local_hostname=name, timeout=seconds)
    # Expected TLS host name. smtplib only accepts it in the constructor, which connects immediately.
    client._host = mailbox.host  # type: ignore[attr-defined]
    return client


def _connect(server: smtplib.SMTP, mailbox: Mailbox) -> Failure | None:
    try:
        code, _ = server.connect(mailbox.host, mailbox.port)
    except (OSError, UnicodeError) as error:  # smtplib's own errors are OSErrors
        return channel.RetryableFailure(f"no connection: {type(error).__name__}")
    return (
        None if code // 100 == 2 else _failure_for_code("the connection", code, channel.FailureScope.CHANNEL)
    )


def _greet(server: smtplib.SMTP, mailbox: Mailbox) -> Failure | None:
    """EHLO, TLS and the login."""
    try:
        server.ehlo_or_helo_if_needed()
        if mailbox.port != SMTPS:
            if server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            elif mailbox.host not in LOOPBACK:
                reason = f"{mailbox.host} offers no STARTTLS, so mail and password would be sent in the clear"
                return channel.PermanentFailure(reason, channel.FailureScope.CHANNEL)
        if mailbox.user:
            server.login(mailbox.user, mailbox.password)
    except smtplib.SMTPNotSupportedError:
        return channel.PermanentFailure(f"{mailbox.host} offers no login", channel.FailureScope.CHANNEL)
    except smtplib.SMTPResponseException as error:
        return _failure_for_code(
            "the login" if server.esmtp_features else "EHLO", error.smtp_code, channel.FailureScope.CHANNEL
        )
    except smtplib.SMTPException as error:
        return channel.RetryableFailure(type(error).__name__)
    except (OSError, ValueError) as error:
        return channel.RetryableFailure(f"no connection: {type(error).__name__}")
    return None


def _send_envelope(server: smtplib.SMTP, sender: str, target: str) -> Failure | None:
    """MAIL and RCPT."""
    try:
        code, _ = server.mail(sender)
        if code // 100 != 2:
            return _failure_for_code("the sender", code, channel.FailureScope.CHANNEL)
        code, _ = server.rcpt(target)
        return (
            None if code // 100 == 2 else _failure_for_code("the recipient", code, channel.FailureScope.ROUTE)
        )
    except (OSError, ValueError) as error:
        return channel.RetryableFailure(f"no connection: {type(error).__name__}")


def _send_data(server: smtplib.SMTP, mail: EmailMessage) -> Failure | None:
    """Send DATA. If the connection drops afterwards, the message may have been accepted."""
    try:
        code, _ = server.data(mail.as_bytes(policy=SMTP))
    except smtplib.SMTPDataError as error:
        return _failure_for_code("the message", error.smtp_code, channel.FailureScope.MESSAGE)
    except (OSError, ValueError) as error:
        return channel.UnconfirmedSend(f"no answer: {type(error).__name__}")
    return None if code // 100 == 2 else _failure_for_code("the message", code, channel.FailureScope.MESSAGE)


def _failure_for_code(step: str, code: int, scope: channel.FailureScope) -> Failure:
    # 4xx is temporary, 5xx permanent; 421 closes the channel. The server's text is not logged.
    reason = f"the server refuses {step}: {code}"
    if 400 <= code < 500:
        return channel.RetryableFailure(reason, None, channel.FailureScope.CHANNEL if code == 421 else scope)
    return channel.PermanentFailure(reason, scope)


def open_email(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """A sender over the operator's server. `write` is not used."""
    return Email(_mailbox(settings))


def inspect(settings: Mapping[str, str]) -> list[channel.ChannelHealth]:
    """Check that the server is reachable, supports TLS and accepts the login."""
    mailbox = _mailbox(settings)
    server, location = _unconnected_client(mailbox), f"{mailbox.host}:{mailbox.port}"
    try:
        with time_limit(lambda: server.sock, TIMEOUT_SECONDS):
            failure = _connect(server, mailbox)
            if failure is not None:
                hint = "Fix DQ_SMTP_HOST and DQ_SMTP_PORT."
                return [channel.ChannelHealth(False, f"{location}: {failure.reason}", hint)]
            failure = _greet(server, mailbox)
    finally:
        server.close()
    if failure is not None:
        return [
            channel.ChannelHealth(
                False, f"{location}: {failure.reason}", "Fix DQ_SMTP_USER and DQ_SMTP_PASSWORD."
            )
        ]
    login = "accepts the login" if mailbox.user else "requires no login"
    return [channel.ChannelHealth(True, f"{location} {login}")]


def _mailbox(settings: Mapping[str, str]) -> Mailbox:
    values = {name: settings.get(name, "").strip() for name in ("host", "port", "from", "user", "password")}
    port = values["port"] or str(SUBMISSION)
    if not values["host"] or not values["from"]:
        raise UsageError("Alerts by email need a server and a sender.", "Set DQ_SMTP_HOST and DQ_SMTP_FROM.")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"Invalid SMTP port {port!r}.", f"Write {SUBMISSION} or {SMTPS} in DQ_SMTP_PORT.")
    if target_problem("email", values["from"]):
        raise UsageError(f"Invalid sender address {values['from']!r}.", "Fix DQ_SMTP_FROM.")
    if bool(values["user"]) != bool(values["password"]):
        raise UsageError(
            "A login at the mail server needs a user and a password.",
            "Set DQ_SMTP_USER, and DQ_SMTP_PASSWORD or DQ_SMTP_PASSWORD_FILE, or neither.",
        )
    return Mailbox(values["host"], int(port), values["from"], values["user"], values["password"])


CHANNEL = channel.Channel(
    id="email",
    summary="Email over SMTP, one thread per incident. At least once; a duplicate has the same Message-ID.",
    can=channel.Capabilities(thread=True, update=False, reconcile=False, uses_digests=True),
    make=open_email,
    settings=(
        channel.ChannelSetting("host", "DQ_SMTP_HOST", "The mail server."),
        channel.ChannelSetting(
            "port", "DQ_SMTP_PORT", f"Its port; {SUBMISSION} with STARTTLS, {SMTPS} with TLS."
        ),
        channel.ChannelSetting("from", "DQ_SMTP_FROM", "The sender address."),
        channel.ChannelSetting("user", "DQ_SMTP_USER", "The user name for the mail server."),
        channel.ChannelSetting(
            "password", "DQ_SMTP_PASSWORD", "The password for the mail server.", secret=True
        ),
    ),
    inspect=inspect,
)
