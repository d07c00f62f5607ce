"""What the gate's commands share: rules and policy at hand, and the judgement of a pull request."""
