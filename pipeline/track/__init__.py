"""Logs results to MLflow: runs, sweeps, registered models, chart pages.

`stores` opens a tracking store and lets one process log at a time; `runs` lays out and writes each run
once; `charts` prepares pages of MLflow's UI and links to them.

Doors: ingest, runs.idempotency, runs.sweep_run, stores, ui_server
"""
