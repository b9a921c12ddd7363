"""Rewriting Triton sources: one change each, at one place, that a diagnosis may call for.

All work on Python's syntax tree. Verify decides whether a change keeps the result, profile whether it pays.
"""
