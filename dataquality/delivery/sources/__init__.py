"""What shows that a delivery arrived: the sources of evidence, asked for one cycle at a time."""
