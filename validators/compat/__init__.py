"""Compatibility of contract changes: classifies the differences found by `contracts.diff`."""
