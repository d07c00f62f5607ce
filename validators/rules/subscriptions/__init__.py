"""Rules about subscriptions."""
