"""Rules about compilation and graphs."""
