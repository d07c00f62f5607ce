"""What an engine says of a failure, without the values of the data that it may show."""

from __future__ import annotations

import re

# Conditions of Spark that name columns, types, tables and files only; what they quote is worth reading.
_SAFE = re.compile(
    r"\[(UNRESOLVED_|UNRESOLVABLE_|TABLE_OR_VIEW_|PATH_|DATATYPE_MISMATCH|PARSE_SYNTAX_ERROR|UNABLE_TO_INFER"
    r"|DATA_SOURCE_|FAILED_READ_FILE|CANNOT_READ_|UNSUPPORTED_|AMBIGUOUS_|COLUMN_|FIELD_NOT_FOUND|CONNECT"
    r"|INVALID_EXTRACT_|INVALID_SCHEMA|NESTED_AGGREGATE|INCOMPATIBLE_|MISSING_|WRONG_NUM_ARGS|SCHEMA_|DELTA_"
    r"|HUDI_|ICEBERG_)|\S+ is not a Parquet file|File \S+ does not exist"
)
_CONDITION = re.compile(r"\[[A-Z_.0-9]+\] ?")
# Where a value may begin: in quotes, after a colon, as a number, or as a key of a map.
_VALUE = re.compile(r"['\"`:=@\[{(]|-?\d|(?<=map key )")


def without_values(text: str) -> str:
    """The text up to where a value may begin, and an ellipsis there.

    Only conditions that never show a value are left whole. Casts that fail, numbers out of range and
    records that cannot be parsed show what they found.
    """
    if _SAFE.match(text):
        return text
    condition = _CONDITION.match(text)
    begin = condition.end() if condition else 0
    value = _VALUE.search(text, begin)
    return text if value is None else f"{text[: value.start()].rstrip()} …"
