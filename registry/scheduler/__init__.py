"""Amazon EventBridge Scheduler: what is started whenever a delivery is due."""
