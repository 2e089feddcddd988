"""What several rules of a family measure alike."""
