"""Making the catalog match: table specifications, plan, apply, publish."""
