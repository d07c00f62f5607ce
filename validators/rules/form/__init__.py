"""Rules about the file, its form, and the contract as a whole."""
