"""What a change of a contract breaks: the judgement of the differences from `contracts.diff`."""
