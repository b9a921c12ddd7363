"""Runs untrusted or fragile code in processes with limits, and observes what it does to its process.

`processes` forks, limits and supervises; `confinement` takes rights away from a process (Landlock, seccomp,
mounts, capabilities); `observation` compares a process with its state before a candidate ran, and reads
tensors safely; `models` has what judging and timing need of models from elsewhere: problem, import, weights.

Doors: confinement.confine, confinement.own_network, confinement.system_calls, models.candidate_import,
models.error_place, models.model_problem, models.weight_transfer, observation.background_activity,
observation.module_copy, observation.process_state, observation.tensor_access, processes.channel,
processes.child_session, processes.descendants, processes.fork_server, processes.fork_service,
processes.machine_resources, processes.scheduling_delay, processes.supervisor, processes.worker_client,
progress_messages, stage_command, torch_internals, untrusted_compilation
"""
