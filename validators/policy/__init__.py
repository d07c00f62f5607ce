"""Policy of a registry: its file, rules and waivers, and changes of it by a branch."""
