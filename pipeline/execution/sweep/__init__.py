"""Hydra's multirun: all jobs of a sweep as one Snakemake DAG, and an objective back for each."""
