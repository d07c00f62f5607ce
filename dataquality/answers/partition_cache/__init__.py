"""Answers kept by folder, so that a promise about all of a table is told from what is new."""
