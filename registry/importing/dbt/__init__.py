"""What a project of dbt says of its tables: its manifest, or a file of properties."""
