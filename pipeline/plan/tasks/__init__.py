"""Tasks: cells of the grid in, the specs of their stages out."""
