"""Kernels that were not written for us: problems and candidates in the format of KernelBench.

A *problem* (`problem`) is a file with `Model`, `get_inputs` and `get_init_inputs`; a *candidate* is a file
with `ModelNew`. The judge derives conditions from the problem (`conditions`), expected values and bounds from
`Model` in float64 (`pipeline.verify.checks.rounding`), and tries each candidate (`trial`) in a process
of its own (`process`), which never holds the expected values. Their messages stand in `messages`.
"""
