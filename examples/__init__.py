"""The example registry that 'dq demo' replays."""
