"""Agents: models that write sources (coder) and say what to change next (judge). Verdicts are not theirs."""
