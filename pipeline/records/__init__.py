"""The nouns of the project: frozen records, their identity and JSON form, formulas, errors, the environment.

The sub-packages follow a reader's questions: `configuration` is what conf/ declares, `planning` what the plan
makes of it, `search` what a search learns and writes, `results` what each stage found. The base is here:
`record` (base class, JSON, digests), `outcome`, `errors` (the error tree), `environment` (the only module
that reads environment variables), `layout` (paths below artifacts/), `formula`, `provenance`,
`entry_points`, `python_source`.

All modules are open to all rooms.

Doors: configuration, entry_points, environment, errors, formula, layout, library_internals, outcome,
planning, provenance, python_source, record, results, search
"""
