"""Rules about quality rules, their metrics and their SQL."""
