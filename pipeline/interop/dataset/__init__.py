"""Data sets of what was found out, for those who train models: rows, pairs, files and a card."""
