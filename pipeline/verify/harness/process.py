"""Runs in the candidate's process: maps the memory, gives up its rights, loads the candidate, and answers.

In: a `LoadRequest`, then requests over a channel. Out: an answer to each. Expected values never enter this
process. The candidate may do anything in it: the judge reads outputs from shared memory, and changes to the
process are looked for.
"""

import faulthandler
import mmap
import os
import sys
from pathlib import Path
from typing import NoReturn, Protocol

from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import backend, candidate_backends
from pipeline.records.environment import untranslated
from pipeline.sandbox.confinement import own_network
from pipeline.sandbox.confinement.confine import confine
from pipeline.sandbox.confinement.own_network import Network
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.fork_service import import_all
from pipeline.verify.harness.messages import (
    Answer,
    ConfinedReply,
    DeclaredKernel,
    LoadRequest,
    ReadyReply,
    RefusedReply,
    Request,
)

MODEL_PRELOAD = (
    "numpy",
    "torch",
    "triton",
    "triton.experimental.gluon",  # else the first launch imports it
    "pipeline.verify.harness.process",
    "pipeline.verify.harness.conventions.outputs_returned",
)
"""For a fork server whose children run models."""


def interpreting() -> dict[str, str]:
    """Environment variables with which kernels of all languages of candidates run without their device."""
    found = [backend(name).interpreter for name in candidate_backends()]
    return {name: value for each in found if each is not None for name, value in each.environment.items()}


def prepare() -> None:
    """Import that, in a branch of the warm worker for candidates without their device."""
    os.environ.update(interpreting())  # Triton reads it when it is imported
    import_all(MODEL_PRELOAD)


class Convention(Protocol):
    """How a candidate is loaded and called."""

    def load(self) -> ReadyReply | RefusedReply:
        """Run the candidate's code for the first time."""
        ...

    def answer(self, request: Request) -> Answer:
        """Do what is asked."""
        ...


def serve(channel: Channel, network: Network = "none") -> None:
    """Answer until the channel closes."""
    sys.dont_write_bytecode = True  # what a first import would write looks like files of the candidate's
    faulthandler.disable()  # the sandbox reports how the process ends; the log is the candidate's
    send, receive = channel.send, channel.receive
    load: LoadRequest = receive(LoadRequest)
    descriptor = os.open(load.arena, os.O_RDWR)
    memory = mmap.mmap(descriptor, load.size)
    os.close(descriptor)
    folders = device(load.candidate.device).driver_folders()
    isolation = confine(Path.cwd(), folders, network=network)
    send(ConfinedReply(isolation=isolation, process=os.getpid()))
    convention = convention_of(load, memory)
    send(convention.load())
    while True:
        try:
            request: Request = receive(Request)
        except EOFError:
            return
        send(convention.answer(request))


def start_checked(channel: Channel) -> NoReturn:
    """Become the tool that it is sent the command of, which runs `serve` in a process that it watches.

    The tool talks to the process by TCP, so both get a network that nobody else is in.
    """
    command: list[str] = channel.receive(list[str])
    own_network.enter()
    # A library that started threads when it is imported could not be confined afterwards.
    environment = {**untranslated(), "OPENBLAS_NUM_THREADS": "1"}
    scratch = str(Path.cwd())
    os.chdir(Path(__file__).parents[3])  # where its modules are found
    command += [sys.executable, "-m", "pipeline.verify.harness.process", str(channel.inherited()), scratch]
    os.execvpe(command[0], command, environment)


def convention_of(load: LoadRequest, memory: mmap.mmap) -> Convention:
    """The one of a candidate; the modules of the other one are not imported."""
    if isinstance(load.candidate, DeclaredKernel):
        from pipeline.verify.harness.conventions.outputs_given import OutputsGiven

        return OutputsGiven(load.candidate, memory)
    from pipeline.verify.harness.conventions.outputs_returned import OutputsReturned

    return OutputsReturned(load.candidate, memory)


if __name__ == "__main__":
    os.environ.pop("LD_PRELOAD", None)  # the tool is in this process; what it starts is none of its business
    os.chdir(sys.argv[2])
    serve(Channel(int(sys.argv[1])), network="own")
