"""Clauses on rows in memory, without Spark and Java: the same predicates, read by Python."""
