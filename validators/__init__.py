"""Validation of contracts: rules, policy, reports."""
