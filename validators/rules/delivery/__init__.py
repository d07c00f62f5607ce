"""Rules about service levels and delivery promises."""
