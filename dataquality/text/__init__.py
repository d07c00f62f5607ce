"""Text files as a contract describes them: rows of CSV, objects of JSON, and their values; no engine."""
