"""What a trace shows where a finding is worst, few enough events to be drawn."""
