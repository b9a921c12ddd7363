"""The conditions under which a candidate must be right, as far as the problem's contract allows.

In: sizes, variations, counts. Out: `Condition`s: which sizes, weights, seed and kind of values. All of them
follow from the problem: fresh draws of its own `get_inputs()`, other values of the same kind, sign and range,
smaller sizes through its module-level names, its own groups of inputs, other weights.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

from pipeline.records.record import Record
from pipeline.verify.harness.messages import WeightUpdate
from pipeline.verify.harness.planning.trial_sizes import Sizes
from pipeline.verify.oracle.input_variations import (
    CONCENTRATED,
    CONSTANT_ROWS,
    ONE_SIGN,
    REFUSABLE,
    STRIDED,
    described,
)

Kind = Literal["base", "values", "sizes", "declared", "full", "group", "weights"]
"""`full`: the declared sizes where they are so large that a candidate is called once on them, at the end."""

Constants = Literal["as constructed", "random", "signed", "negative"]
_EVERY_SECOND: tuple[Constants, ...] = ("as constructed", "random")
"""On other sizes: a tail that leaves out a scale or a bias shows only where these are not all 1 or 0. A
candidate that packs them in a form of its own is called with the others."""
_EVERY_FOURTH = (None, None, ONE_SIGN, ONE_SIGN)
"""On other sizes: what is padded with zeros shows where all values are below them."""


class Condition(Record, frozen=True, kw_only=True):
    """One call that is to be right."""

    kind: Kind
    sizes: Sizes
    """Module-level names with another value than the declared one."""
    weights: int
    """Seed under which `Model` and `ModelNew` are constructed."""
    constants: Constants = "as constructed"
    """Parameters that `Model` constructs alike under every seed may get other values; signed: trained ones
    that are all 1 get both signs; negative: those that are all 0 get values below -4, as a bias may have that
    leaves nothing above 0."""
    seed: int
    """Of the inputs."""
    variation: str | None = None
    group: int | None = None
    refusable: bool
    """Whether a candidate may raise: sizes that the problem does not declare."""

    @property
    def label(self) -> str:
        """For reasons: `rows=5 cols=7, permuted, seed 17`."""
        parts = [" ".join(f"{name}={size}" for name, size in self.sizes.items()) or "declared sizes"]
        if self.group is not None:
            parts = [f"input group {self.group}"]
        if self.variation is not None:
            parts.append(described(self.variation))
        if self.kind == "weights" or self.constants != "as constructed":
            parts.append("other weights")
        return f"{', '.join(parts)}, seed {self.seed}"


class CallOptions(Record, frozen=True, kw_only=True):
    """How a case is called."""

    shift: int = 0
    """Bytes by which all addresses differ from the usual ones."""
    lead: int = 0
    """Elements of their storages before the inputs' first ones; 0: as the problem gives them."""
    threads: int = 1
    instrumented: bool = False
    """Whether the candidate's own builds find data races between the threads."""
    protected: bool = False
    """Whether the inputs are read-only."""
    fenced: bool = False
    """Whether nothing can be read around the inputs, each of which ends where a page does."""
    same_objects: bool = False
    """Whether it gets the very tensors of the call before that had this, filled with other values."""
    suppress: bool = False
    """Whether the candidate's own kernels are left out."""
    settle: float = 0.0
    """Seconds after which outputs are looked at again."""
    interrupted: bool = False
    """Whether `forward` is called on other values before gradients are propagated back."""


class MadeCall(Record, frozen=True, kw_only=True):
    """One call of a trial, as it can be made again."""

    condition: Condition
    options: CallOptions = CallOptions()
    update: WeightUpdate | None = None
    """How the instance before got the weights of the condition; None: it had them, or a new one was made."""
    backward: bool = False
    """Whether gradients were propagated back."""


class ConditionRequest(Record, frozen=True, kw_only=True):
    """How many conditions of each kind to make."""

    draws: int
    """Fresh draws of the inputs on the base sizes, at least two: a result that was only kept shows."""
    variations: Sequence[str]
    others: Sequence[Sizes]
    base: Sizes
    groups: int
    """How many groups of inputs the problem defines."""
    try_declared: Literal["often", "once", "no"]
    """Whether the declared sizes, where they are not the base, are small enough to be tried as others are, or
    once, or not at all."""
    seeds: Sequence[int]
    """Unknown to the candidate; more than there are conditions, or they are used again."""


def conditions(request: ConditionRequest) -> tuple[Condition, ...]:
    """All conditions; the first one is a draw on the base sizes."""
    return tuple(_conditions(request))


def _conditions(request: ConditionRequest) -> Iterator[Condition]:
    seeds = itertools.cycle(request.seeds)
    weights, other_weights = next(seeds), next(seeds)
    base, may_refuse = dict(request.base), bool(request.base)
    drawn = [next(seeds) for _ in range(max(request.draws, 2))]
    for seed in drawn:
        yield Condition(kind="base", sizes=base, weights=weights, seed=seed, refusable=may_refuse)
    again = [CONCENTRATED] * 2 * (CONCENTRATED in request.variations)  # which values are far along is chance
    for variation in (*request.variations, *again):
        yield Condition(
            kind="values",
            sizes=base,
            weights=weights,
            seed=drawn[0] if variation == STRIDED else next(seeds),  # the same values
            variation=variation,
            refusable=may_refuse or variation in REFUSABLE,
        )
    for number in range(request.groups):
        yield Condition(
            kind="group", sizes={}, weights=weights, seed=next(seeds), group=number, refusable=False
        )
    for number, sizes in enumerate(request.others):
        yield Condition(
            kind="sizes",
            sizes=dict(sizes),
            weights=weights,
            constants=_EVERY_SECOND[number % 2],
            seed=next(seeds),
            variation=_EVERY_FOURTH[number % 4] if ONE_SIGN in request.variations else None,
            refusable=True,
        )
    others: list[tuple[Constants, str | None]] = [
        ("as constructed", None),
        ("random", None),
        ("signed", None),
        ("negative", None),
    ]
    if CONSTANT_ROWS in request.variations:
        # With equal values in a row, errors of a sum in few digits do not average out; with weights that are
        # not all 1, the rounding of the result does not hide them. A draw of some twenty rows may miss it.
        others += [("random", CONSTANT_ROWS)] * 2
    for constants, varied in others:
        yield Condition(
            kind="weights",
            sizes=base,
            weights=other_weights,
            constants=constants,
            seed=next(seeds),
            variation=varied,
            refusable=may_refuse,
        )
    if base and request.try_declared == "once":
        yield Condition(kind="full", sizes={}, weights=weights, seed=next(seeds), refusable=False)
    for constants in _EVERY_SECOND if base and request.try_declared == "often" else ():
        yield Condition(
            kind="declared",
            sizes={},
            weights=weights,
            constants=constants,
            seed=next(seeds),
            refusable=False,
        )
