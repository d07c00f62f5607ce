"""Deliveries against their SLO: evidence, cycles, status, budget."""
