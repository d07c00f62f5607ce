"""Consumers told by a topic of Amazon SNS."""
