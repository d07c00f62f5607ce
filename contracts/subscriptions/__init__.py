"""Who consumes what: the subscription files of a registry, and the columns that each of them is about."""
