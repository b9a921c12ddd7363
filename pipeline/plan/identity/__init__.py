"""Identity: what the results of a stage depend on beside its inputs: code and tools."""
