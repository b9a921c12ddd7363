"""The tables of an experiment: results in, pyarrow tables with explicit schemas out, a module for each table."""
