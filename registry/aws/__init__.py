"""AWS services through boto3: Glue, Lake Formation, EventBridge Scheduler and SNS, with request checks."""
