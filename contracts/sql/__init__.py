"""SQL of contracts: what may be asked of the data, and how our own questions are written.

The gate and the check share it. Only `text` comes without sqlglot; the others are imported by whoever has a
query or a predicate at hand, so that a contract without SQL does not pay for the parser.
"""
