"""What `dq check` does: which rows, one run, what is told of it."""
