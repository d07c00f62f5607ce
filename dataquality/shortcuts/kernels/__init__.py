"""Plain questions answered in Python tasks over Arrow columns, which costs less than Spark SQL."""
