"""Write, audit, publish: what is staged is checked by dq's own check before any reader can see it."""
