"""Sources of answers: what a check asks is told by the first source that can, and Spark scans the rest."""
