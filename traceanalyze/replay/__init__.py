"""What if: the recorded program again, without some of what it did (definitions §18)."""
