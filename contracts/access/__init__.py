"""Access control: untrusted files, locations of data, and hosts of alerts."""
