"""Collectives of one rank."""
