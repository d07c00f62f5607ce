"""Rules about the policy of a registry, and what it asks of contracts."""
