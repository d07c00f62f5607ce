"""Telling people once: incidents, outbox, messages, channels."""
