"""Events of OpenLineage for what checks and publications do."""
