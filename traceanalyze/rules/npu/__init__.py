"""Rules about the Ascend environment."""
