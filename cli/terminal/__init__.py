"""What people see of dq: the one way out, and how far a run is."""
