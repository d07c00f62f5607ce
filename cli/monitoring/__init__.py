"""What other programs watch of dq: figures for Prometheus, and the sign of life."""
