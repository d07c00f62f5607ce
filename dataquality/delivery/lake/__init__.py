"""What lies in a lake: files, and the commits of Delta, Iceberg and Hudi tables, read without a JVM."""
