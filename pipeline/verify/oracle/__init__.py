"""The right answer: inputs, expected values, and how far rounding may lead away from them."""
