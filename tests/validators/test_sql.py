"""Which queries of quality rules are refused before any engine sees them."""

from __future__ import annotations

import pytest

from dq.validators.rules.sql_not_read_only import refused

FINE = [
    "SELECT count(*) FROM {object}",
    "select 1;",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "(SELECT 1)",
    "SELECT 'DELETE FROM x; DROP TABLE y' -- ; DELETE FROM x\nFROM t",
    'SELECT `insert into`, "a;b" FROM t /* ; update t set a */',
    "SELECT update, delete, set FROM t",
    "SELECT 'it''s' , 'a\\'b;' FROM t",
    "VALUES (1)",
]
REFUSED = {
    "DELETE FROM t": "begins with 'DELETE', and not with SELECT or WITH",
    "select 1; select 2": "holds several statements",
    "SELECT 1; DROP TABLE t": "holds several statements",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": "writes: INSERT INTO",
    "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a": "writes: DELETE FROM",
    "WITH a AS (SELECT 1) UPDATE t SET b = 1": "writes: UPDATE",
    "SELECT reflect('java.lang.System', 'exit', 1)": "calls Java with reflect",
    "SELECT 'open": "opens ' and does not close it",
    "SELECT 1 /* open": "opens /* and does not close it",
    "-- nothing": "is empty",
    "SET a = b": "begins with 'SET', and not with SELECT or WITH",
}


@pytest.mark.parametrize("query", FINE)
def test_a_query_that_only_reads_passes(query: str) -> None:
    assert refused(query) is None


@pytest.mark.parametrize(("query", "reason"), REFUSED.items())
def test_another_query_is_refused_with_its_reason(query: str, reason: str) -> None:
    assert refused(query) == reason
