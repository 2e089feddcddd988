"""The model every reader fills and every analysis reads: columns of int64 nanoseconds and dictionary-coded names."""
