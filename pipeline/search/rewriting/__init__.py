"""Rewriting sources: one change each, at one place, that a diagnosis may call for.

`triton_loops` works on Python's syntax tree, `cpp_loops` on the loops of a C++ source without its comments
and strings. Whether a change keeps the result is for verify to say; whether it is worth it, for profile.
"""
