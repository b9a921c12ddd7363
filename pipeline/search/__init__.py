"""Search: the formulas of the yamls, the space that they leave, and strategies that propose variants."""
