"""One delivery made known: partition, marker, receipt, notice."""
