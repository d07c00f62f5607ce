"""Spark's SQL for the guard: functions stay as they are written, names and texts are written in our way."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from dq.contracts.sql import text as sql


class _Parser(SparkParser):
    """Spark's grammar, in which a function is just its name and arguments: none is translated."""

    FUNCTIONS = {}
    FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")}
    NO_PAREN_FUNCTION_PARSERS = {name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")}


class _Generator(SparkGenerator):
    """Spark SQL whose identifiers and texts are written as everywhere in this room."""

    def identifier_sql(self, expression: exp.Identifier) -> str:
        return sql.name(expression.name)

    def literal_sql(self, expression: exp.Literal) -> str:
        return sql.text(expression.name) if expression.is_string else expression.name

    def rawstring_sql(self, expression: exp.RawString) -> str:
        return sql.text(expression.name)

    def interval_sql(self, expression: exp.Interval) -> str:
        # Its number must be a plain literal.
        return f"INTERVAL '{expression.this.name}' {expression.args['unit'].name.upper()}"


class SqlDialect(Spark):
    Parser = _Parser
    Generator = _Generator
