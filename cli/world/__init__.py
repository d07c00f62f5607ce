"""What a command takes from the world: settings, clock, environment, state, Spark, processors."""
