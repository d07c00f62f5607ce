"""When a delivery is due: strict cron, zone, daylight-saving policy, cycles."""
