"""Runs plans: through Snakemake, as sweeps, on clusters, as bundles without network, or step by step.

`stage_commands` holds the command lines of stages and the processes that run them; `workers` keeps a process
warm that has the libraries imported; `recovery` removes what a killed run left behind.
`run_display` shows a run of Snakemake, `run_results` and `failure_listing` what it came to; `kernel_check`
verifies one kernel; `submissions` hands judged candidates to the leaderboard; `device_check` checks the path
to a GPU; `scaffolding` writes the files of a new kernel.

Doors: aa_test, agents.agent_service, agents.mcp_server, bundle.operations, bundle.requirements,
cluster.probing, cluster.site, device_check.device_checking, gym, judging_run, kernel_check,
machine_ceilings, plan_listing, recovery, run_results, scaffolding.kernel_files, snakemake_command,
space_summary, store_cleaning, store_sync, submissions, sweep.command_line, workers.submit, workflow
"""
