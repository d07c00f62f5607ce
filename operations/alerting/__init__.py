"""Alerts as operations send them: routes, what is added to them, channels."""
