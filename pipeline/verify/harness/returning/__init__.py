"""Candidates with a `ModelNew`, which return their outputs."""
