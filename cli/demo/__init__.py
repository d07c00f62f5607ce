"""The demonstration: ten days of real flights, delivered, checked, alerted."""
