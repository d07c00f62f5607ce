"""AWS Glue's Data Catalog by boto3: its words, its rules, its client, its tables and partitions."""
