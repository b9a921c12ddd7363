"""What a device reaches: bandwidth by level of the memory, peaks, latency of a call; and what that bounds."""
