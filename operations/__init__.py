"""What dq does, a module for each use: values in, values out, nothing printed."""
