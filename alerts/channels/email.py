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
from dq.alerts.message import COMMAND, Message, about, colour, cut, ending, headline, lines, news
from dq.contracts.access.access_policy import LOOPBACK, WEB, web_address
from dq.contracts.access.alert_target import form_fault
from dq.contracts.escaping import html
from dq.contracts.outcome import UsageError

# A message as a page of HTML that mail programs show: tables and styles in place, nothing to load.


def page(message: Message, *, step: bool) -> str:
    """The whole message, or one `step` with the headline above it."""
    shade = colour(message)
    small = news(message) if step else ending(message)
    facts = [] if step else about(message)
    return "\n".join(
        [
            '<div style="font-family:sans-serif;font-size:14px">',
            f'<p style="border-left:6px solid {shade};padding-left:8px;font-size:17px">'
            f"<b>{html(headline(message))}</b></p>",
            *(['<table style="font-size:14px">', *map(_row, facts), "</table>"] if facts else []),
            *(f"<p>{html(line)}</p>" for line in small),
            "</div>",
        ]
    )


def _row(fact: tuple[str, str]) -> str:
    label, value = fact
    said = html(value)
    if web_address(value, WEB):
        said = f'<a href="{said}">{said}</a>'
    if label == COMMAND:
        said = f'<code style="background:#f3f3f3;padding:2px 5px">{said}</code>'
    beside = "padding-right:12px;color:#616061;white-space:nowrap;vertical-align:top"
    return f'<tr><td style="{beside}">{html(label)}</td><td>{said}</td></tr>'


# Alerts by email over SMTP: one thread for each incident, its steps as replies.
#
# At least once: a server that took a message and went away cannot be asked. The repeat has the same
# Message-ID, by which many mailboxes drop it. Sources: RFC 5321 (replies, the size of addresses), RFC 5322
# 3.6.4 (threads), RFC 3834 (Auto-Submitted).

SUBMISSION, SMTPS = 587, 465
# Of all steps together: the lease of the outbox is longer.
_LIMIT_SECONDS = 30.0
_SUBJECT = 180

Failure = channel.NotSent | channel.Ambiguous | channel.Rejected


@dataclass(frozen=True, slots=True)
class Mailbox:
    """How the operator's server is reached, and who writes."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def domain(self) -> str:
        """The domain of whoever writes."""
        return self.sender.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Email:
    """Sends each message over a connection of its own."""

    mailbox: Mailbox
    limit_seconds: float = _LIMIT_SECONDS
    now: Callable[[], float] = time.time

    def create(
        self, target: str, message: Message, key: str, below: channel.MessagePlace | None = None
    ) -> channel.Answer:
        subject = cut(headline(message), _SUBJECT)
        text = "\n".join([headline(message), "", *lines(message)])
        return self._send(target, message, key, (subject, text), below)

    def reply(self, receipt: channel.MessagePlace, message: Message, key: str) -> channel.Answer:
        text = "\n".join([headline(message), "", *news(message)])
        return self._send(receipt.place, message, key, ("", text), receipt)

    def _send(
        self,
        target: str,
        message: Message,
        key: str,
        said: tuple[str, str],
        below: channel.MessagePlace | None,
    ) -> channel.Answer:
        wrong = form_fault("email", target)
        if wrong is not None:
            return channel.Rejected(f"{wrong.message}. {wrong.mend}", channel.Blockage.ROUTE)
        subject, text = said
        # The subject of a thread never changes: some programs make threads of subjects.
        root, _, first = (below.root if below else "").partition(" ")
        own = f"<{key}@{self.mailbox.domain}>"
        mail = EmailMessage(policy=SMTP)
        mail["From"], mail["To"] = self.mailbox.sender, target
        mail["Subject"] = f"Re: {first}" if root else subject
        mail["Date"] = formatdate(self.now())
        mail["Message-ID"] = own
        if root:
            mail["In-Reply-To"] = mail["References"] = root
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-DQ-Incident"] = message.incident
        mail.set_content(text)
        mail.add_alternative(page(message, step=not subject), subtype="html")
        failure = _deliver(self.mailbox, target, mail, self.limit_seconds)
        if failure is not None:
            return failure
        return channel.Sent(
            channel.MessagePlace(target, f"{own} {first or subject}", below.root if below else "")
        )


def _deliver(mailbox: Mailbox, target: str, mail: EmailMessage, limit_seconds: float) -> Failure | None:
    """Hands a mail to the server; None when it took it."""
    server = _server(mailbox)
    try:
        with time_limit(lambda: server.sock, limit_seconds):
            failure = _connect(server, mailbox) or _greet(server, mailbox)
            failure = failure or _address(server, mailbox.sender, target)
            return failure or _hand_over(server, mail)
    finally:
        server.close()


def _server(mailbox: Mailbox) -> smtplib.SMTP:
    """A client that is not connected, so that its time can be limited from the first byte on."""
    name, seconds = mailbox.domain, TIMEOUT_SECONDS
    if mailbox.port == SMTPS:
        context = ssl.create_default_context()
        client: smtplib.SMTP = smtplib.SMTP_SSL(local_hostname=name, timeout=seconds, context=context)
    else:
        client = smtplib.SMTP(local_hostname=name, timeout=seconds)
    # Whom TLS must find there; smtplib takes it from its constructor alone, which would connect at once.
    client._host = mailbox.host  # type: ignore[attr-defined]
    return client


def _connect(server: smtplib.SMTP, mailbox: Mailbox) -> Failure | None:
    try:
        code, _ = server.connect(mailbox.host, mailbox.port)
    except (OSError, UnicodeError) as error:  # smtplib's own errors are OSErrors
        return channel.NotSent(f"no connection: {type(error).__name__}")
    return None if code // 100 == 2 else _refused("the connection", code, channel.Blockage.CHANNEL)


def _greet(server: smtplib.SMTP, mailbox: Mailbox) -> Failure | None:
    """EHLO, TLS and the login."""
    try:
        server.ehlo_or_helo_if_needed()
        if mailbox.port != SMTPS:
            if server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            elif mailbox.host not in LOOPBACK:
                said = f"{mailbox.host} offers no STARTTLS, so mail and password would be sent in the clear"
                return channel.Rejected(said, channel.Blockage.CHANNEL)
        if mailbox.user:
            server.login(mailbox.user, mailbox.password)
    except smtplib.SMTPNotSupportedError:
        return channel.Rejected(f"{mailbox.host} offers no login", channel.Blockage.CHANNEL)
    except smtplib.SMTPResponseException as error:
        return _refused(
            "the login" if server.esmtp_features else "EHLO", error.smtp_code, channel.Blockage.CHANNEL
        )
    except smtplib.SMTPException as error:
        return channel.NotSent(type(error).__name__)
    except (OSError, ValueError) as error:
        return channel.NotSent(f"no connection: {type(error).__name__}")
    return None


def _address(server: smtplib.SMTP, sender: str, target: str) -> Failure | None:
    """MAIL and RCPT."""
    try:
        code, _ = server.mail(sender)
        if code // 100 != 2:
            return _refused("the sender", code, channel.Blockage.CHANNEL)
        code, _ = server.rcpt(target)
        return None if code // 100 == 2 else _refused("the recipient", code, channel.Blockage.ROUTE)
    except (OSError, ValueError) as error:
        return channel.NotSent(f"no connection: {type(error).__name__}")


def _hand_over(server: smtplib.SMTP, mail: EmailMessage) -> Failure | None:
    """DATA: whoever goes away after it may have taken the message."""
    try:
        code, _ = server.data(mail.as_bytes(policy=SMTP))
    except smtplib.SMTPDataError as error:
        return _refused("the message", error.smtp_code, channel.Blockage.MESSAGE)
    except (OSError, ValueError) as error:
        return channel.Ambiguous(f"no answer: {type(error).__name__}")
    return None if code // 100 == 2 else _refused("the message", code, channel.Blockage.MESSAGE)


def _refused(what: str, code: int, scope: channel.Blockage) -> Failure:
    # 4xx is for now, 5xx for good; 421 closes the channel. The server's words are not for our logs.
    said = f"the server refuses {what}: {code}"
    if 400 <= code < 500:
        return channel.NotSent(said, None, channel.Blockage.CHANNEL if code == 421 else scope)
    return channel.Rejected(said, scope)


def open_email(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """A sender over the operator's server. `write` is not used."""
    return Email(_mailbox(settings))


def inspect(settings: Mapping[str, str]) -> list[channel.Inspection]:
    """Whether the server is there, speaks TLS and takes the login."""
    mailbox = _mailbox(settings)
    server, place = _server(mailbox), f"{mailbox.host}:{mailbox.port}"
    try:
        with time_limit(lambda: server.sock, TIMEOUT_SECONDS):
            failure = _connect(server, mailbox)
            if failure is not None:
                mend = "Mend DQ_SMTP_HOST and DQ_SMTP_PORT."
                return [channel.Inspection(False, f"{place}: {failure.reason}", mend)]
            failure = _greet(server, mailbox)
    finally:
        server.close()
    if failure is not None:
        return [
            channel.Inspection(False, f"{place}: {failure.reason}", "Mend DQ_SMTP_USER and DQ_SMTP_PASSWORD.")
        ]
    did = "took the login" if mailbox.user else "wants no login"
    return [channel.Inspection(True, f"{place} {did}")]


def _mailbox(settings: Mapping[str, str]) -> Mailbox:
    given = {name: settings.get(name, "").strip() for name in ("host", "port", "from", "user", "password")}
    port = given["port"] or str(SUBMISSION)
    if not given["host"] or not given["from"]:
        raise UsageError("Alerts by email need a server and a sender.", "Set DQ_SMTP_HOST and DQ_SMTP_FROM.")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"{port!r} is no port of SMTP.", f"Write {SUBMISSION} or {SMTPS} in DQ_SMTP_PORT.")
    if form_fault("email", given["from"]):
        raise UsageError(f"{given['from']!r} is no address that could send.", "Correct DQ_SMTP_FROM.")
    if bool(given["user"]) != bool(given["password"]):
        raise UsageError(
            "A login at the mail server needs a user and a password.",
            "Set DQ_SMTP_USER, and DQ_SMTP_PASSWORD or DQ_SMTP_PASSWORD_FILE, or neither.",
        )
    return Mailbox(given["host"], int(port), given["from"], given["user"], given["password"])


CHANNEL = channel.Channel(
    id="email",
    summary="Mail over SMTP, a thread for each incident. At least once; a repeat has the same Message-ID.",
    can=channel.Capabilities(thread=True, update=False, reconcile=False, folds=True),
    make=open_email,
    settings=(
        channel.ChannelSetting("host", "DQ_SMTP_HOST", "The mail server."),
        channel.ChannelSetting(
            "port", "DQ_SMTP_PORT", f"Its port; {SUBMISSION} with STARTTLS, {SMTPS} with TLS."
        ),
        channel.ChannelSetting("from", "DQ_SMTP_FROM", "Who writes."),
        channel.ChannelSetting("user", "DQ_SMTP_USER", "Who logs in at the mail server."),
        channel.ChannelSetting(
            "password", "DQ_SMTP_PASSWORD", "The password at the mail server.", secret=True
        ),
    ),
    inspect=inspect,
)
