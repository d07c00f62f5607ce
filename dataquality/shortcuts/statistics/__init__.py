"""What formats keep beside the values, one file per format, and what it proves."""
