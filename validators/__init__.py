"""The gate: rules on contracts, policy, reports."""
