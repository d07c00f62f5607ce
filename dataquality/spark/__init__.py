"""Access to Spark: readers, plans, measurements, schemas, failing rows."""
