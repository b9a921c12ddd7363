"""Have a candidate's kernels compiled for a hardware target that is absent, in a process of their own.

In: a candidate, a draft whose call is compiled, the target. Out: what became of it (`Assembled`).
"""

from pathlib import Path

from pipeline.records.hardware import Target
from pipeline.sandbox.sandbox import ChildEnded, ForkServer, Limits
from pipeline.store.owners import scratch_folder
from pipeline.verify.harness.in_place.session import how_it_ended
from pipeline.verify.harness.returning.encoding import place
from pipeline.verify.harness.returning.messages import Assemble, Assembled
from pipeline.verify.harness.returning.planning.case_plans import Draft
from pipeline.verify.harness.returning.session import Subject

TARGET = "pipeline.verify.harness.returning.runtime.cross_compiler:serve"
PRELOAD = (
    "numpy",
    "torch",
    "triton",
    "pipeline.backends.triton.preload",
    "pipeline.verify.harness.returning.runtime.cross_compiler",
)
LOG = "compile.txt"


def assemble_for(
    server: ForkServer, subject: Subject, draft: Draft, target: Target, folder: Path
) -> Assembled:
    """Compile the kernels of one call; a process that does not come to an end leaves them uncompiled."""
    slots, _ = place({**draft.initial.tensors, **draft.encoded.tensors}, 0)
    message = Assemble(
        source=subject.source,
        target=target,
        initial=draft.initial.values,
        arguments=draft.encoded.values,
        tensors=slots,
    )
    settings = subject.settings
    limits = Limits(seconds=settings.time_limit, memory=settings.memory_limit, output=settings.output_limit)
    with scratch_folder() as scratch:
        child = server.start(TARGET, limits=limits, log=folder / LOG, scratch=scratch)
        try:
            child.send(message)
            answer: Assembled = child.receive(settings.time_limit, Assembled)
        except ChildEnded as ended:
            return Assembled(incomplete=how_it_ended(ended.exit, "while it was compiled").reason)
        finally:
            child.stop()
    return answer


def facts_text(assembled: Assembled) -> str:
    """What a reader may want to know of the binaries: `softmax_kernel: 40 registers, 0 B spilled`."""
    parts = []
    for kernel in assembled.kernels:
        facts = [
            f"{kernel.registers} registers" if kernel.registers is not None else "",
            f"{kernel.spills} B spilled" if kernel.spills else "",
            f"{kernel.shared_memory} B shared" if kernel.shared_memory else "",
        ]
        parts.append(f"{kernel.name}: {', '.join(fact for fact in facts if fact) or 'compiled'}")
    return "; ".join(dict.fromkeys(parts))
