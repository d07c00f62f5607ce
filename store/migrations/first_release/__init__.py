"""The tables of the first release, by rooms."""
