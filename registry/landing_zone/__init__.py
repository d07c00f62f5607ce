"""What an account needs before dq: a stack of CloudFormation, and the actions that its roles may take."""
