"""What differs between two versions of a contract: facts, no verdicts."""
