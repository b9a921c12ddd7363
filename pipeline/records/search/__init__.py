"""What a search learns from and writes: trials, recorded spaces, written sources, answers of models."""
