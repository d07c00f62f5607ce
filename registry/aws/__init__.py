"""Services of AWS by boto3: Glue, Lake Formation, EventBridge Scheduler and SNS, and what each refuses."""
