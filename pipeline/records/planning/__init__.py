"""What the plan makes of the configuration: problems, tasks, the spec of each stage, a sweep's objective."""
