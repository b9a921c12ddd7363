"""Runs plans: through Snakemake, as sweeps, on clusters, as bundles without network, or step by step.

`stage_commands` holds the command lines of stages and the processes that run them; `workers` keeps a process
warm that has the libraries imported; `recovery` removes what a killed run left behind.

Doors: aa_test, bundle.operations, bundle.requirements, cluster.probing, cluster.site, gym, judging_run,
machine_ceilings, plan_listing, recovery, snakemake_command, space_summary, store_sync, sweep.command_line,
workers.submit, workflow
"""
