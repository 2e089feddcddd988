"""Chinese texts (Simplified). Keys are those of English; values are what people read."""
