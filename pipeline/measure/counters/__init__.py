"""Hardware counters of a call."""
