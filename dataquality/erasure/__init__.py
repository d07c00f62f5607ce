"""Search all physical files of tables for the keys of people, and the proof that files have none of them."""
