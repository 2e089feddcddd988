"""Any profile against any other: what the difference in step time is made of, and which work matches which."""
