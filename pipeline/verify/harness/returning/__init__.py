"""Judges candidates with a `ModelNew`, which return their outputs."""
