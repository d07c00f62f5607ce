"""The forms of what commands print for machines."""
