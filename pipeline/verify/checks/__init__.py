"""The checks that judge every call, one module each; the gate that a variant must pass; calls of models."""
