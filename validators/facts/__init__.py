"""What several rules ask of one contract."""
