"""Answers that Python tasks over Parquet files give, without rows that cross to the JVM."""
