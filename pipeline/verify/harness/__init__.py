"""Runs a candidate in a process of its own and records what it does, for two calling conventions.

`in_place`: outputs are passed to the candidate. `returning`: the candidate returns them, as a `ModelNew`
does. Modules with the same name in both have the same purpose; what both share is next to them.
"""
