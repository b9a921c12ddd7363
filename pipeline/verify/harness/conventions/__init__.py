"""How a candidate is loaded and called in its process: it is given its outputs, or it returns them."""
