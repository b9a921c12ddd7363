"""Sampling: a search space, Optuna's samplers by name, and a study that asks for new points only."""
