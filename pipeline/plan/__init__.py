"""Config: the only place with Hydra. From `conf/` and overrides to records, tasks and the stages' specs."""
