"""What the metadata of a table says of it, without Spark and without a read of its rows."""
