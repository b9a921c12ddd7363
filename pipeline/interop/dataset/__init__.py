"""A data set of results for training models: rows, pairs of platforms, files, and a card."""
