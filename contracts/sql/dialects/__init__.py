"""What words mean in the dialects of SQL."""
