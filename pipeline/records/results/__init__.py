"""What the stages found: a module per stage, in the order of the flow, and `collection`, which joins them."""
