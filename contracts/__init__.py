"""The contract: YAML with positions to a typed model, its types, its schedule, and the words all rooms share."""
