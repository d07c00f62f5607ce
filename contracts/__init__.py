"""The contract: YAML with places to a typed model, its types, its schedule, and the words of all rooms."""
