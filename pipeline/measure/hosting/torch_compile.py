"""What `torch.compile` needs, imported once for all tasks. Out: a fork server whose children have it.

Dynamo and Inductor take two seconds to import, in a process of its own for each task. The warm worker has a
branch for them: only there, because they also double what a fork costs, and candidates are forked one by one.
"""

from pathlib import Path

from pipeline.records.environment import warm_worker
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.sandbox.processes.worker_client import fork_server

PREPARE = "pipeline.measure.hosting.torch_compile:load"
HEADERS = "precompiled_headers"
"""Torch's folder for them."""
HEADER_PAYS = 5
"""Kernels that one checkout has compiled when torch's header is precompiled: that takes 5.3 s of CPU time and
saves each further kernel 1.0 s (GCC 12, torch 2.13)."""


def load() -> None:
    """Import them, in a process that compiles nothing itself."""
    import torch._inductor.config

    # Before the rest: a pool of compiler processes takes seconds to start, and there is one file to build.
    torch._inductor.config.compile_threads = 1
    import torch._dynamo.config
    import torch._inductor.compile_fx


def trust_vector_instructions() -> None:
    """For this process: have the C++ compiler try none of them out, which takes 0.3 s for each.

    What the setting is for leaves out some (bfloat16, VNNI, AMX), which are tried out all the same.
    """
    import torch._inductor.cpu_vec_isa

    torch._inductor.config.cpp.vec_isa_ok = True
    torch._inductor.cpu_vec_isa.VecISA.check_build = _works  # type: ignore[method-assign, assignment]


def choose_header() -> None:
    """For this process: precompile torch's header where that lies ready, or has become worth it.

    It lies in the user's folder for temporary files. A kernel that is compiled without is the same kernel.
    """
    import torch._inductor.config
    from torch._inductor.runtime.cache_dir_utils import cache_dir, default_cache_dir

    made = any(Path(default_cache_dir(), HEADERS).glob("*.gch"))
    kernels = sum(1 for _ in Path(cache_dir()).glob("*/*.so"))
    torch._inductor.config.cpp_cache_precompile_headers = made or kernels >= HEADER_PAYS


def _works(instructions: object, code: str) -> bool:  # noqa: ARG001
    return True


def warm_server() -> ForkServer | None:
    """For a job of the warm worker; elsewhere, and where that cannot have a branch, there is none."""
    worker = warm_worker()
    control = None if worker is None else fork_server(worker, PREPARE)
    return None if control is None else ForkServer.at(control)
