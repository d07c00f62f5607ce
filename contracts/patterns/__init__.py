"""Regular expressions that ECMA-262 and Java read alike, and that answer soon."""
