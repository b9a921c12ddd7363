"""Identity: what the results of a stage depend on besides its inputs: code and tools."""
