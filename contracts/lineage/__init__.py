"""Which product is made from which, as contracts declare it."""
