"""What a call costs besides time: energy and memory."""
