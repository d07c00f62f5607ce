"""Readers of files as frames: texts by one description, Parquet and ORC with the columns of every file."""
