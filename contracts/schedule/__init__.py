"""When a delivery is due: strict cron, zones, daylight-saving policy."""
