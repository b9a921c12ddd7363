"""The HTML report: one page, made from the tables of aggregate, that opens without network."""
