"""Stages: files in, one file out; one module each, listed in `table`.

Each is a program, `python -m pipeline.stages.NAME`, that rules and bundles start by name. Their modules do
not import one another; `optional` reaches code of other rooms that only some tasks run.

Doors: generate, judge, profile, table, timing
"""
