"""The operations of dq, a module for each use: values in, values out, nothing printed."""
