"""The Spark side and the delivery side: metrics, checks, plan, measurement; evidence, cycles, budgets."""
