"""Views of compiled variants: listings, differences, instructions by source line, and the report."""
