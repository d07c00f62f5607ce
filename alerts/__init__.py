"""Alerts: incidents, outbox, messages and channels."""
