"""Hydra sweeps as one Snakemake DAG: launcher, sweepers, the folders and the results of jobs."""
