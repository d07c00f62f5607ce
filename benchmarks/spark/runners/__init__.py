"""One file per engine that is measured: how it is asked for the forty clauses, as its own docs advise.

Each has `build(place, scale, variant, session) -> (covers, run)`: the clauses that the engine is asked for,
and a function that asks once and returns the ids of the broken ones.
"""
