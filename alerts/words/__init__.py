"""Words of messages that know nothing of incidents."""
