"""Alerts as commands send them: where they may go, and how they get there."""
