"""The metrics of dq's own engine, as contracts write them: what each takes, and what a rule asks with it."""
