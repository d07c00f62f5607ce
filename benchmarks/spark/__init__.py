"""The parts of benchmarks/spark_checks.py; what runs in a peer's environment imports nothing of dq."""
