"""Runs a candidate in a process of its own and records what it does, for two calling conventions.

`in_place`: the candidate is given its outputs. `returning`: it returns them, as a `ModelNew` does. Modules of
one name in both do the same thing; what both use lies beside them.
"""
