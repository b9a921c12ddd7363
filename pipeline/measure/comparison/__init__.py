"""A candidate and its baselines in alternating rounds: intervals, verdicts, precision."""
