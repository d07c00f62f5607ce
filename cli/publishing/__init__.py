"""Publishing with all that it needs of the world: the store, a catalog, receipts, and who is told."""
