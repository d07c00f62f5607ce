"""Data quality checks (metrics, clauses, plan, measurement) and delivery SLOs (evidence, cycles, budgets)."""
