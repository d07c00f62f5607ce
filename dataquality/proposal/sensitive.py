"""TABLE: columns whose values are never written into a contract, by their names and by their forms.

What is classified is sensitive because somebody said so; here is what nobody has said yet.
"""

from __future__ import annotations

import re

from dq.dataquality.proposal.policy import snake

# Whole words of a name.
_WORDS = frozenset(
    {
        "aadhaar", "address", "apikey", "bic", "birth", "birthdate", "birthday", "birthplace", "bsn",
        "card", "cpf", "credential", "curp", "cvv", "diagnosis", "disability", "dob", "email", "ethnicity",
        "fax", "firstname", "geburtsdatum", "health", "iban", "ip", "ipv4", "ipv6", "kennwort", "lastname",
        "login", "maiden", "mail", "medical", "mobile", "msisdn", "nachname", "nationality", "nickname",
        "nino", "passport", "passwd", "password", "patient", "pesel", "phone", "pin", "race", "religion",
        "salary", "secret", "sexuality", "sin", "ssn", "steuernummer", "strasse", "street", "surname",
        "tax", "taxid", "telephone", "token", "user", "username", "vorname", "wage",
    }
)  # fmt: skip
# Words that are a person's together.
_PAIRS = ("first_name", "last_name", "full_name", "given_name", "family_name", "middle_name", "user_name",
          "customer_name", "person_name", "contact_name", "account_number", "account_holder", "credit_card",
          "api_key", "access_key", "private_key", "zip_code", "post_code", "postal_code")  # fmt: skip
FORMS = frozenset({"email", "ipv4", "ipv6"})
_LONG = re.compile(r"[A-Za-z0-9+/_=.-]{20,}")


def by_name(name: str) -> bool:
    """Whether a column of this name holds what is about a person, or opens a door."""
    words = snake(name)
    return not _WORDS.isdisjoint(words.split("_")) or any(pair in words for pair in _PAIRS)


def like_a_secret(value: str) -> bool:
    """Whether a text looks like a token: long, without a blank, of letters and digits."""
    return (
        _LONG.fullmatch(value) is not None
        and any(sign.isdigit() for sign in value)
        and any(sign.isalpha() for sign in value)
    )
