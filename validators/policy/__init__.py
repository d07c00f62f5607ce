"""The policy of a registry: its file, its rules, its waivers, and what a branch does to it."""
