"""SQL of contracts: validation of users' queries, and text of generated ones.

Validation and checks share it. Only `text` does not import sqlglot; the other modules are imported where
there is a query or a predicate, so that a contract without SQL does not pay for the parser.
"""
