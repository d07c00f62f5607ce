"""Rules that data has kept so far, proposed for its contract with the evidence of each."""
