"""YAML as contracts use it: read with places and bounds, written in one canonical form."""
