"""How long a call takes: timers, rounds against baselines, conditions, ceilings, costs.

Doors: ceilings, comparison, conditions.device_lock, hosting, measurement_identity, statistics
"""
