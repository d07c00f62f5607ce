"""What was judged: derived again, compared, excused, and kept no longer than need be."""
