"""Handlers of AWS Lambda functions that run dq."""
