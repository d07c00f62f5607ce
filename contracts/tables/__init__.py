"""The tables that contracts promise, by their names in a catalog and their folders."""
