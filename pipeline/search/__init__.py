"""Spaces of valid points, strategies that propose variants, and writers of sources.

Doors: agents, bound_pruning, proposed_variants, sampling, spaces, static_pruning, stopping_rules, strategy,
strategy_registry, trial_history
"""
