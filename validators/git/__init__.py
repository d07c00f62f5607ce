"""Git as the gate needs it: one door, fixed settings, objects, trees, the base of a pull request."""
