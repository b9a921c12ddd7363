"""Search strategies, one module each: the history of a search in, the next points or sources out."""
