"""The database, name and folder of a table, as `dq register` writes them into a catalog."""

from __future__ import annotations

import re

from dq.contracts.model import Contract, SchemaObject

_PATTERN = re.compile(r"[*?\[{]")


def database_name(contract: Contract, server_database: str) -> str:
    """Return the server's database, else domain and data product, else the contract's name or id."""
    if server_database:
        return server_database.lower()
    parts = [part for part in (contract.domain, contract.data_product) if part]
    words = "_".join(parts) or contract.name or contract.id
    word = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return f"_{word}" if word[:1].isdigit() else word


def table_name(schema_object: SchemaObject) -> str:
    """Return the object's physical name, else its name, in lower case."""
    return schema_object.column.lower()


def is_view(schema_object: SchemaObject) -> bool:
    """Whether the object is a view, which has no folder of its own."""
    return (schema_object.physical_type or "").lower() == "view"


def table_folder(path: str) -> str:
    """Return the folder of a pattern such as `s3://lake/orders/*.parquet`; a table is a folder."""
    steps = path.split("/")
    pattern = next((index for index, step in enumerate(steps) if _PATTERN.search(step)), len(steps))
    return "/".join(steps[:pattern])
