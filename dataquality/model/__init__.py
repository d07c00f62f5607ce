"""Engine-independent model of checks: columns, predicates, metrics, run context."""
