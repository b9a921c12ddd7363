"""Commands: arguments in, one call into a lower room, exit code out."""
