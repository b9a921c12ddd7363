"""How long a call takes: rounds against baselines, the processes that are timed, conditions, ceilings, costs.

Doors: ceilings, comparison, hosting, measurement_identity, statistics
"""
