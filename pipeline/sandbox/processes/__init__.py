"""Forks, limits and supervises processes, and talks to them."""
