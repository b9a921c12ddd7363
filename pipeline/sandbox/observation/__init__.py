"""Observes a process in which a candidate runs: replaced functions, changed settings, threads left behind."""
