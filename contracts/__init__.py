"""Contracts: YAML with source locations, typed model, column types, schedules, and shared vocabulary."""
