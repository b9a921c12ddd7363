"""Compile, load and launch one softmax with the real host libraries on the driver's stand-in.

python -m tests.backends.launch_on_stand_in cuda|triton FOLDER

torch has no device here: what is asked of it is answered, and tensors of the CPU stand for the device's.
"""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from pipeline.backends.abi import Abi
from pipeline.backends.backend import LaunchError
from pipeline.backends.registry import backend
from pipeline.records.results.compiled import Compiled
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.stages.compile import WorkerDriver
from tests.backends.cuda import cuda_jobs
from tests.backends.triton import triton_jobs
from tests.paths import ROOT

SHAPE = {"rows": 16, "cols": 2048}


def answer_for_torch() -> None:
    """One device with a stream."""
    stream = SimpleNamespace(cuda_stream=0)
    answers: dict[str, Any] = {
        "is_available": True,
        "current_device": 0,
        "synchronize": None,
        "current_stream": stream,
        "get_device_capability": (9, 0),
        "set_device": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    torch._C._cuda_getCurrentRawStream = lambda _: 0  # type: ignore[attr-defined]


def main(name: str, folder: Path) -> None:
    """Print what launching raises."""
    jobs = {"cuda": cuda_jobs.declared_job, "triton": triton_jobs.declared_job}
    job = jobs[name]("softmax", "h200", dimensions=SHAPE)
    member = backend(name)
    with ForkServer(preload=("torch", *member.preload)) as server:
        driver = WorkerDriver(server, folder / "worker", reserves=name == "cuda")
        compiled = driver.compile(job, ROOT, folder).result
        driver.stop()
    assert isinstance(compiled, Compiled), compiled
    answer_for_torch()
    if name == "cuda":
        from pipeline.backends.cuda import loading

        loading.Abi = lambda problem, device: Abi(problem, device="cpu")  # type: ignore[assignment, misc]
    if name == "triton":
        from pipeline.backends.triton.device_driver import load_driver

        load_driver("cuda")
    tensors = {each: torch.ones(*SHAPE.values(), dtype=torch.float16) for each in "xy"}
    try:
        launch = member.load(job, compiled, ROOT, folder)
        launch(tensors)
    except LaunchError as error:
        print(f"LaunchError: {error}")
    else:
        print("launched", *(f"{tensor.data_ptr():#x}" for tensor in tensors.values()))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
