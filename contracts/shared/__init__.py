"""The words that all rooms share: errors, faults, outcomes, shelves, what may be printed."""
