"""Storage and table formats of a data lake, read without a JVM."""
