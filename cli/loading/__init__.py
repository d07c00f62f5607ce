"""The contracts that a command takes along, and what becomes of those that it cannot."""
