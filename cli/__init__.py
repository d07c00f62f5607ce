"""The command line: the only place that knows all rooms and wires them."""
