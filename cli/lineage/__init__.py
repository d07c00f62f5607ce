"""Events of OpenLineage: what was checked or published, from what, and what was found."""
