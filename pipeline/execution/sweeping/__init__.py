"""Sweeping: what a Hydra sweep searches, in batches of jobs, and what came out."""
