"""What the gate says, for terminals, CI systems and programs."""
