"""Readers: one file a format, each turning bytes into the model; `detect` chooses by content, never by name alone."""
