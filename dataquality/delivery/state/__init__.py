"""What the watcher keeps beside its cycles."""
