"""The checks that judge every call, one module each, and the gate that a variant must pass."""
