"""Replay: what compile, verify and profile say of a variant, looked up in a file of recorded measurements."""
