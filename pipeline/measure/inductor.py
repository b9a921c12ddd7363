"""What `torch.compile` needs, imported once for all tasks. Out: a fork server whose children have it.

Dynamo and Inductor take two seconds to import, in a process of its own for each task. The warm worker has a
branch for them: only there, because they also double what a fork costs, and candidates are forked one by one.
"""

from pipeline.environment import warm_worker
from pipeline.workers.requests import fork_server
from pipeline.workers.sandbox import ForkServer

PREPARE = "pipeline.measure.inductor:load"


def load() -> None:
    """Import them, in a process that compiles nothing itself."""
    import torch._inductor.config

    # Before the rest: a pool of compiler processes takes seconds to start, and there is one file to build.
    torch._inductor.config.compile_threads = 1
    import torch._dynamo.config
    import torch._inductor.compile_fx


def warm_server() -> ForkServer | None:
    """For a job of the warm worker; elsewhere, and where that cannot have a branch, there is none."""
    worker = warm_worker()
    control = None if worker is None else fork_server(worker, PREPARE)
    return None if control is None else ForkServer.at(control)
