"""The parts of benchmarks/spark_checks.py; what runs in a peer's own environment imports nothing else of dq."""
