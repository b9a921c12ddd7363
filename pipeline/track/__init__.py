"""Logs results to MLflow: runs, sweeps, registered models, chart pages.

`stores` opens a tracking store and lets one process log at a time; `runs` lays out and writes each run
once; `ingest` logs an experiment, `submission_ingest` judged candidates; `chart_pages` prepares pages of
MLflow's UI, and `mlflow_ui` links to them.

Doors: attempt_runs, ingest, mlflow_ui, run_listing, runs.idempotency, runs.sweep_run, stores,
submission_ingest
"""
