"""What becomes of a catalog's plan: how it is judged and shown, kept in a file, and found again."""
