"""Decides whether a kernel is right: expected values, a harness for candidates, checks, mutation tests.

`oracle` knows the right answers and how far rounding may lead away from them; `candidates` reads problems and
candidates in other formats; `harness` runs a candidate in a process of its own, by one of two calling
conventions; `checks` judges each call; `mutation` tests the checks themselves.

Doors: candidates, harness.preparation, harness.conventions.outputs_given, harness.kernel_trial,
harness.planning.shapes, harness.model_cases, harness.cross_compilation,
harness.messages, harness.session, harness.model_trial, mutation, oracle.random_inputs
"""
