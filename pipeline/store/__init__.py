"""The artifact store: where files lie, and how they are written so that a kill cannot break them."""
