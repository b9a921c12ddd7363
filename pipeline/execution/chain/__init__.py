"""The chain of stages: their command lines for concrete keys, and the processes that run them."""
