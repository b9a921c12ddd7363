"""Data sets of flashinfer-bench: definitions become problems, solutions candidates, verdicts traces."""
