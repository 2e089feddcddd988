"""One pass over the text of a Chrome trace into columns: a native scanner and the pure-Python twin that specifies it."""
