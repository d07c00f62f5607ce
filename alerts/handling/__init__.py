"""What is made of incidents once they are recorded: summaries, causes."""
