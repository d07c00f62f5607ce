"""Values that a check is made of; nothing here knows an engine."""
