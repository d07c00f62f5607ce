"""Rules about primary keys, partition columns and relationships."""
