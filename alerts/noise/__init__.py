"""What keeps alerts few: pure decisions about when something is said, and about whom."""
