"""The CPU of the machine."""
