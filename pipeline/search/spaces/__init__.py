"""Search spaces: tunables and rules in; how many points are valid, and any of them, out."""
