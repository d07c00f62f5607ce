"""From a table that exists to the contract that describes it."""
