"""What one change of one attribute means: the tables, and the comparators that their rows are made of."""
