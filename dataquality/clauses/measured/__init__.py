"""What the metrics of dq's own engine share: from a rule to its questions, and to its verdict."""
