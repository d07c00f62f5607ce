"""Clauses of a contract: their tests, their coverage, and the check kinds that evaluate them."""
