"""Rules about ranks."""
