"""Without Spark: clauses answered from Arrow rows, samples of files, pandera schemas."""
