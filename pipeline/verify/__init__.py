"""Decides whether a kernel is right: expected values, a harness for candidates, checks, mutation tests.

`oracle` knows the right answers and how far rounding may lead away from them; `candidates` reads problems and
candidates in other formats; `harness` runs a candidate in a process of its own, by one of two calling
conventions; `checks` judges each call; `mutation` tests the checks themselves.

Doors: candidates, harness.conventions.outputs_given, harness.cross_compilation, harness.failed_call,
harness.kernel_trial, harness.messages, harness.model_cases, harness.model_trial,
harness.planning.preparation, harness.planning.shapes, harness.process, harness.repeated_call,
harness.session, mutation, oracle.random_inputs
"""
