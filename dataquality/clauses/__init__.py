"""From a contract to clauses: what is checked, what is only documented, and what each kind needs."""
