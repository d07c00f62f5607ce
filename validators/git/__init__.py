"""Git access of the validation: fixed settings, objects, trees, and the base of a pull request."""
