"""Bad rows written apart, and classified values that nothing shows."""
