"""Values, dates, formats and predicates as Spark SQL, and what users' SQL says that others can answer."""
