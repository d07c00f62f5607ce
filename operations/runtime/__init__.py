"""Inputs of operations from outside: settings, clock, state, Spark."""
