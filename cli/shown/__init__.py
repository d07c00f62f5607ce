"""Results of operations, for people and machines."""
