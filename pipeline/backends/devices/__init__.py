"""Kinds of device: what is present, how it is timed, what it reaches and reports; one package each."""
