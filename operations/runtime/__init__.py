"""What operations take from outside: settings, clock, state, Spark."""
