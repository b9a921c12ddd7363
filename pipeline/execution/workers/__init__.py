"""The warm worker, and the client that runs a stage in it."""
