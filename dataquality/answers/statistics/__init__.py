"""What formats keep beside the values, one module per format, and what it proves."""
