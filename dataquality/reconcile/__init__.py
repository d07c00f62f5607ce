"""Comparison of two sides that should agree: the meaning of equality, metadata, hashes, rows, the result."""
