"""Delivery schedules: strict cron, time zones, and daylight-saving policy."""
