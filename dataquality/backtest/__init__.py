"""What each rule of a contract would have said of the partitions that are there already."""
