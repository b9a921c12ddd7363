"""The tables of an experiment: results in, pyarrow tables out, a module for each table."""
