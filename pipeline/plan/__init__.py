"""Plans runs: from conf/ and overrides to tasks and the specs of their stages.

`config` composes and checks options; `tasks` makes specs of them; `identity` derives what each stage depends
on. `plan_cache` is the way in: it makes a plan only if something that it depends on has changed.

Doors: cluster_nodes, config, identity.stage_builds, identity.tool_versions, judging, local_machine,
plan_cache, plan_inputs, spec_files
"""
