"""Tracking stores: opening, locking, retrying, and the tables of MLflow's database."""
