"""Answers that need no scan: statistics of files, tasks without rows, counts of folders."""
