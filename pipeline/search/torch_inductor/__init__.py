"""What torch.compile generates for a reference, as one source; captured in processes of their own."""
