"""Two majors of a contract are two products, and the store remembers which file holds each.

What stood under a contract's id was one product: all of it goes to the major that was watched, tested or
published last. Major 1 keeps the id alone, so that its open incidents and budgets stay where they are.

Revision ID: 0005
"""

from __future__ import annotations

from urllib.parse import quote

import sqlalchemy as sa
from alembic import op

from dq.store.schema import UtcDateTime

revision = "0005"
down_revision = "0004"

# Where a contract stands, and of those the ones whose rows say its version, with what tells the newest.
_FILED = ("cycle", "slo_watermark", "receipt", "check_run", "incident")
_VERSIONED = (("cycle", "due_at"), ("check_run", "at"), ("receipt", "delivered_at"))


def upgrade() -> None:
    """File every product under its key, and make the table of the files that hold them."""
    for contract, version in _newest().items():
        product = _key(contract, version)
        if product != contract:
            for name in _FILED:
                table = sa.table(name, sa.column("contract", sa.Text))
                op.execute(sa.update(table).where(table.c.contract == contract).values(contract=product))
    op.create_table(
        "contract_holder",
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("since", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("contract", name="pk_contract_holder"),
    )


def _newest() -> dict[str, str]:
    """The version of each contract that was seen last."""
    found: dict[str, str] = {}
    for name, at in reversed(_VERSIONED):
        table = sa.table(
            name, sa.column("contract"), sa.column("contract_version"), sa.column(at, UtcDateTime)
        )
        both = (table.c.contract, table.c.contract_version)
        rows = op.get_bind().execute(sa.select(*both).group_by(*both).order_by(sa.func.max(table.c[at])))
        # A cycle says more than a run, and a run more than a receipt.
        found |= {row.contract: row.contract_version for row in rows}
    return found


def _key(contract: str, version: str) -> str:
    """As `identity.key` made it when this migration was written."""
    major = version.removeprefix("v").partition(".")[0]
    if major == "1" and "@" not in contract:
        return contract
    return f"{contract}@{quote(major, safe='')}"
