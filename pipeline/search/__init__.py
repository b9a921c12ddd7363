"""Spaces of valid points, strategies that propose variants, and writers of sources.

Doors: agents.answer_cache, agents.answer_parsing, agents.kernel_contract, agents.prompts,
agents.round_context, proposed_variants, sampling, simulated_search, spaces.search_space,
spaces.technique_removal, stopping_rules, strategy, strategy_registry, trial_history, variant_pruning
"""
