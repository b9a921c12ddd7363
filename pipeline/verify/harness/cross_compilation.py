"""Has a candidate's kernels compiled for an absent hardware target, in a separate process.

In: a candidate, a plan whose call is compiled, the target. Out: the result of each kernel (`CompileReply`).
"""

from pathlib import Path

import msgspec

from pipeline.records.configuration.hardware import Target
from pipeline.sandbox.processes.fork_server import ChildEnded, ForkServer, Limits
from pipeline.store.temporary import scratch_folder
from pipeline.verify.harness.encoding import place
from pipeline.verify.harness.messages import CompileReply, CompileRequest, InterpretedLaunch
from pipeline.verify.harness.planning.case_plans import CasePlan
from pipeline.verify.harness.session import BUILD_OUTPUT, BUILD_SECONDS, ModelSubject, exit_failure

TARGET = "pipeline.verify.harness.runtime.cross_compiler:serve"
PRELOAD = (
    "numpy",
    "torch",
    "triton",
    "pipeline.backends.triton.compiler_warm_up",
    "pipeline.verify.harness.runtime.cross_compiler",
)
LOG = "compile.txt"


def cross_compile(  # noqa: PLR0913  (each is something else)
    server: ForkServer,
    subject: ModelSubject,
    plan: CasePlan,
    target: Target,
    folder: Path,
    *,
    interpreted: tuple[InterpretedLaunch, ...] = (),
    gradients: bool = False,
) -> CompileReply:
    """Compile the kernels of one call, with `gradients` also those of its backward.

    `interpreted`: launches that were interpreted, for kernels that this call does not reach.

    A process that does not come to an end leaves them uncompiled. The first configuration of an autotuner
    may be too large for a target that another one fits, or one that the kernel refuses by an assertion: all
    are tried in a new process, because packages keep their choices.
    """
    result = CompileReply()
    for every_configuration in (False, True):
        request = msgspec.structs.replace(
            _request(subject, plan, target),
            interpreted=interpreted,
            gradients=gradients,
            every_configuration=every_configuration,
        )
        result = _answered(server, subject, request, folder)
        if result.failure is None or result.of_extension:
            break
    return result


def _request(subject: ModelSubject, plan: CasePlan, target: Target) -> CompileRequest:
    slots, _ = place({**plan.initial.tensors, **plan.encoded.tensors}, 0)
    return CompileRequest(
        source=subject.candidate.source,
        target=target,
        initial=plan.initial.values,
        arguments=plan.encoded.values,
        tensors=slots,
        gradients=False,
        every_configuration=False,
    )


def _answered(
    server: ForkServer, subject: ModelSubject, request: CompileRequest, folder: Path
) -> CompileReply:
    settings = subject.settings
    seconds = settings.time_limit + (BUILD_SECONDS if subject.builds else 0.0)
    output = max(settings.output_limit, BUILD_OUTPUT if subject.builds else 0)
    limits = Limits(seconds=seconds, memory=settings.memory_limit, output=output)
    with scratch_folder() as scratch:
        child = server.start(TARGET, limits=limits, log=folder / LOG, scratch=scratch)
        try:
            child.send(request)
            answer: CompileReply = child.receive(seconds, CompileReply)
        except ChildEnded as ended:
            return CompileReply(incomplete=exit_failure(ended.exit, "while it was compiled").reason)
        finally:
            child.stop()
    return answer


def facts_text(assembled: CompileReply) -> str:
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
