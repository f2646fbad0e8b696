"""What scenarios share."""
