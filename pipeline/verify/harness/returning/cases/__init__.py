"""What a candidate is called on: conditions that the problem allows, their inputs and expected values."""
