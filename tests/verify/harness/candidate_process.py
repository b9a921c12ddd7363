"""Talk to a candidate's process as the judge does, from tests."""

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import torch

from pipeline.records.results.judged import JudgedWhere
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.fork_server import Child, Limits
from pipeline.verify.harness.buffers import Arena, Slot
from pipeline.verify.harness.encoding import encode, place
from pipeline.verify.harness.messages import (
    Answer,
    CallReply,
    ConfinedReply,
    ConstructRequest,
    ForwardCall,
    LoadRequest,
    ModelFile,
    OutputState,
    ReadyReply,
    WeightUpdate,
)
from pipeline.verify.harness.process import MODEL_PRELOAD, interpreting
from tests.lazy_fork_server import LazyForkServer

SERVER = LazyForkServer(
    preload=MODEL_PRELOAD,
    environment=interpreting(),
)
_ROOM = 1 << 24  # bytes of the arena; outputs begin in its middle
_SECONDS = 180.0  # an extension is built against the headers of PyTorch, on a busy machine
T = TypeVar("T")
RUNS_BODIES = """
class ModelNew(torch.nn.Module):
    def forward(self, body, *arguments):
        made = {}
        exec("def forward(self, x):\\n" + body, globals(), made)
        return made["forward"](self, *arguments)
"""
"""A candidate that gets the body of its `forward(self, x)` with each call, so that many share a process."""


def body(lines: str) -> str:
    """The argument for `RUNS_BODIES`."""
    return textwrap.indent(lines.strip(), "    ")


def answer_of(serve: Callable[[Channel], None], folder: Path, kind: type[T]) -> T:
    """What a function of a module sends from a fresh child of the server."""
    target = f"{serve.__module__}:{serve.__name__}"
    child = SERVER.start(target, limits=Limits(seconds=_SECONDS), log=folder / "log.txt")
    try:
        answer: T = child.receive(_SECONDS, kind)
        return answer
    finally:
        child.stop()


class CandidateProcess:
    """One candidate's process; a context manager."""

    def __init__(self, source: str, folder: Path, *, where: JudgedWhere = "interpreter") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / "scratch"
        scratch.mkdir()
        path = folder / "candidate.py"
        path.write_text(textwrap.dedent(source))
        self.log = folder / "log.txt"
        self.arena = Arena(_ROOM)
        self.child: Child = SERVER.start(
            "pipeline.verify.harness.process:serve",
            limits=Limits(seconds=_SECONDS, memory=8 << 30, output=1 << 30),
            log=self.log,
            scratch=scratch,
        )
        self.loaded = self._ask(
            LoadRequest(
                candidate=ModelFile(source=str(path), where=where, limits={"sm_count": 4}),
                arena=self.arena.path,
                size=_ROOM,
            )
        )
        if isinstance(self.loaded, ConfinedReply):
            self.loaded = self.child.receive(_SECONDS, Answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.child.kill()
        self.arena.__exit__(kind, error, trace)

    def construct(
        self,
        *arguments: Any,
        state: Mapping[str, torch.Tensor] | None = None,
        update: WeightUpdate | None = None,
    ) -> Answer:
        """Construct under seed 0, or change the weights of what was constructed."""
        encoded = encode(list(arguments), "init", "test")
        slots, _ = place({**encoded.tensors, **(state or {})}, 0)
        self._write(slots, {**encoded.tensors, **(state or {})})
        return self._ask(
            ConstructRequest(
                seed=0,
                arguments=encoded.values,
                inputs=tuple(slot for slot in slots if slot.name in encoded.tensors),
                state=tuple(slot for slot in slots if slot.name in (state or {})),
                update=update,
            )
        )

    def call(self, *arguments: Any, **options: Any) -> Answer:
        """Call with a nonce of its own; gradients where `output_gradients` are given."""
        encoded = encode(list(arguments), "input", "test")
        back = {f"output gradient {n}": g for n, g in enumerate(options.pop("output_gradients", ()))}
        slots, _ = place({**encoded.tensors, **back}, 0, lead=options.pop("lead", 0))
        self._write(slots, {**encoded.tensors, **back})
        message = ForwardCall(
            nonce="a nonce",
            arguments=encoded.values,
            inputs=tuple(slot for slot in slots if slot.name in encoded.tensors),
            output_offset=_ROOM // 2,
            output_bytes=_ROOM // 2,
            threads=options.pop("threads", 1),
            protected=options.pop("protected", False),
            gradients=bool(back),
            output_gradients=tuple(slot for slot in slots if slot.name in back),
            **options,
        )
        return self._ask(message)

    def run(self, *arguments: Any, **options: Any) -> CallReply:
        """Load, construct without arguments, call once; everything must work."""
        assert isinstance(self.loaded, ReadyReply), self.loaded
        constructed = self.construct()
        assert isinstance(constructed, ReadyReply), constructed
        done = self.call(*arguments, **options)
        assert isinstance(done, CallReply), done
        return done

    def value(self, returned: OutputState) -> torch.Tensor:
        """The copy in shared memory."""
        assert returned.offset is not None
        plain = torch.empty(returned.shape, device="meta")
        slot = Slot(
            name=returned.name,
            role="output",
            dtype=returned.dtype,
            shape=tuple(plain.shape),
            strides=tuple(plain.stride()),
            start=returned.offset,
            guard=0,
            span=plain.numel(),
        )
        return self.arena.copy(slot)

    def _write(self, slots: tuple[Slot, ...], tensors: Mapping[str, torch.Tensor]) -> None:
        for slot in slots:
            self.arena.view(slot).copy_(tensors[slot.name])

    def _ask(self, message: object) -> Answer:
        self.child.send(message)
        answer: Answer = self.child.receive(_SECONDS, Answer)
        return answer
