"""Decides whether a kernel is right: expected values, a harness for candidates, checks, mutation tests.

`oracle` knows the right answers and how far rounding may lead away from them; `candidates` reads problems and
candidates in other formats; `harness` runs a candidate in a process of its own, by one of two calling
conventions; `checks` judges each call; `mutation` tests the checks themselves.

Doors: candidates, harness.in_place.preparation, harness.in_place.process, harness.in_place.trial,
harness.planning.shapes, harness.returning.case_set, harness.returning.cross_compilation,
harness.returning.messages, harness.returning.session, harness.returning.trial, mutation, oracle.random_inputs
"""
