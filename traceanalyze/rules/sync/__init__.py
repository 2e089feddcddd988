"""Rules about synchronisation points."""
