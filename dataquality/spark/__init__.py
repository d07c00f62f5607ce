"""What Spark is asked: readers, plans, measurements, schemas, rows that fail."""
