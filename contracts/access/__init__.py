"""What may be opened, and where: files of strangers, places of data, hosts of alerts."""
