"""What `dq doctor` looks at: what is installed, the state, and what lies outside of this machine."""
