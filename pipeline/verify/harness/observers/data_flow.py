"""Tracks the flow of data: which of a candidate's tensors come from its own kernels, which from PyTorch.

In: what kernels wrote, and what operators of PyTorch read and returned. Out: for each operator, whether it
worked on results of the candidate's own kernels, and whether its result is an output. Memory is identified by
the address of its storage; every new storage comes from an operator, which determines what it holds.
"""

import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from pipeline.sandbox.observation import tensor_access
from pipeline.verify.harness.messages import Reads, TorchOperation
from pipeline.verify.oracle.computing_operators import JOINING

_Digest = tuple[int, int]
_DIGESTED = 64 << 20  # bytes of a result that is compared with the outputs


@dataclass
class _Tally:
    """One operator on one kind of arguments."""

    count: int = 0
    elements: int = 0
    results: set[_Digest] = field(default_factory=set)


@dataclass(frozen=True)
class _Origin:
    """Of what a storage holds."""

    own: bool = False
    given: bool = False
    """An input of the call, or a copy of one."""
    derived: bool = False
    """Something that was computed from an input."""
    weights: bool = False
    """Weights of `Model`, or something that was made of them alone."""
    tallies: tuple[_Tally, ...] = ()
    """Operators of PyTorch whose results were moved there."""


class DataFlow:
    """What is known during one call; used from all threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._origins: dict[int, _Origin] = {}
        self._tallies: dict[tuple[str, bool], _Tally] = {}
        self._results: dict[int, weakref.ref[torch.Tensor]] = {}
        """What operators returned, by the address of its storage."""

    def next_call(self, inputs: Iterable[int], weights: Iterable[int] = ()) -> None:
        """Forget what operators did; `inputs`: addresses of the storages that the call is given; `weights`:
        of those that hold weights of `Model`."""
        with self._lock:
            self._tallies = {}
            self._results = {}
            self._origins = {at: _Origin(own=origin.own) for at, origin in self._origins.items()}
            self._origins |= {at: _Origin(own=self.is_own(at), weights=True) for at in weights}
            self._origins.update(dict.fromkeys(inputs, _Origin(given=True)))

    def spans(self) -> list[tuple[int, int]]:
        """Address and bytes of the memory of operators' results that still exist, on the host."""
        with self._lock:
            results = [each() for each in self._results.values()]
        return [
            tensor_access.region(each) for each in results if each is not None and tensor_access.on_host(each)
        ]

    def wrote(self, start: int, *, derived: bool) -> None:
        """An own kernel wrote into the storage at this address; `derived`: from what came from an input."""
        with self._lock:
            self._origins[start] = _Origin(own=True, derived=derived)

    def reads(self, starts: Iterable[int]) -> Reads:
        """What a launch on these storages can know of the inputs."""
        origins = [self._origins.get(start, _Origin()) for start in starts]
        if not origins or any(origin.given for origin in origins):
            return "input"
        if any(origin.derived for origin in origins):
            return "derived"
        return "weights" if any(origin.weights for origin in origins) else "nothing"

    def is_own(self, start: int) -> bool:
        """Whether an own kernel wrote what this storage holds."""
        return self._origins.get(start, _Origin()).own

    def of_the_call(self, tensor: torch.Tensor) -> bool:
        """Whether it holds anything that the call was given or that came of it: weights alone do not."""
        origin = self._origins.get(tensor_access.region(tensor)[0], _Origin())
        return origin.own or origin.given or origin.derived

    def computed(self, name: str, arguments: Iterable[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        """An operator of PyTorch computed."""
        arguments = tuple(arguments)
        origins = [self._origins.get(tensor_access.region(tensor)[0], _Origin()) for tensor in arguments]
        own = any(origin.own for origin in origins)
        given = name in JOINING and any(origin.given for origin in origins)
        derived = any(origin.given or origin.derived for origin in origins)
        weights = any(origin.weights for origin in origins)
        sizes = [tensor_access.numel(tensor) for tensor in (*arguments, *results)]
        with self._lock:
            tally = self._tallies.setdefault((name, own), _Tally())
            tally.count += 1
            tally.elements = max([tally.elements, *sizes])
            for result in results:
                self._note(tally, result)
                start = tensor_access.region(result)[0]
                self._results[start] = weakref.ref(result)
                self._origins[start] = _Origin(
                    own=own, given=given, derived=derived, weights=weights, tallies=(tally,)
                )

    def computed_on_host(self, name: str, elements: int) -> None:
        """A function outside of PyTorch computed on what tensors gave it."""
        with self._lock:
            tally = self._tallies.setdefault((name, False), _Tally())
            tally.count += 1
            tally.elements = max(tally.elements, elements)

    def moved(self, arguments: Iterable[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        """An operator of PyTorch viewed, copied, cast, filled or allocated."""
        with self._lock:
            origins = [self._origins.get(tensor_access.region(tensor)[0], _Origin()) for tensor in arguments]
            own = any(origin.own for origin in origins)
            given, derived = any(each.given for each in origins), any(each.derived for each in origins)
            weights = any(each.weights for each in origins)
            tallies = tuple({id(each): each for origin in origins for each in origin.tallies}.values())
            for result in results:
                for tally in tallies:
                    self._note(tally, result)
                self._origins[tensor_access.region(result)[0]] = _Origin(
                    own=own, given=given, derived=derived, weights=weights, tallies=tallies
                )

    def operations(self, outputs: Iterable[torch.Tensor]) -> tuple[TorchOperation, ...]:
        """What PyTorch computed; `outputs`: what came out of the call."""
        found = [(each, tensor_access.digest(each)) for each in outputs if tensor_access.numel(each)]
        digests = {digest for _, digest in found}
        by_torch = set[_Digest]().union(
            *(each.results for (_, own), each in self._tallies.items() if not own)
        )
        own_elements = other_elements = 0
        for output, digest in found:
            if digest in by_torch:
                other_elements += tensor_access.numel(output)
            elif self.is_own(tensor_access.region(output)[0]):
                own_elements += tensor_access.numel(output)
        return tuple(
            TorchOperation(
                name=name,
                count=tally.count,
                elements=tally.elements,
                from_own=own,
                is_output=bool(tally.results & digests),
                beside_own=own_elements > other_elements,
                with_own=own_elements > 0,
            )
            for (name, own), tally in self._tallies.items()
        )

    def _note(self, tally: _Tally, result: torch.Tensor) -> None:
        size = tensor_access.numel(result) * tensor_access.itemsize(result)
        if 0 < size <= _DIGESTED:
            tally.results.add(tensor_access.digest(result))
