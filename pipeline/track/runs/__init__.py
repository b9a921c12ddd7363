"""MLflow runs: what they contain, and writing each of them once."""
