"""One round of agents: the task, its trials, the values of the prompts, and the variants to extend."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipeline.records.errors import StoreError
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.results.variant import Variant
from pipeline.records.search.brief import Brief
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.search_trial import Trial
from pipeline.search.agents.agent_settings import Agent
from pipeline.search.agents.kernel_contract import Contract, contract_of
from pipeline.search.agents.prompts import cut, device_lines, history_lines, promise_lines, trial_lines

REFERENCE_AT_MOST = 6_000  # characters
EXEMPLAR_AT_MOST = 8_000
HEADER_AT_MOST = 16_000
PARENT_AT_MOST = 60_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoundContext:
    """One round of one task."""

    spec: GenerateSpec
    brief: Brief
    agent: Agent
    trials: Sequence[Trial]
    rounds: Sequence[Sequence[Attempt]]
    """Attempts of the earlier rounds, from round 0 on."""
    round: int
    wanted: int
    """Maximum number of attempts in this round."""
    seed: int
    repository: Path
    text: Callable[[Variant], str]
    """Source of a variant."""

    @property
    def parents(self) -> dict[str, str | None]:
        """Id of a variant -> id of the variant that it was made from."""
        return {
            attempt.variant: attempt.parent
            for attempts in self.rounds
            for attempt in attempts
            if attempt.variant is not None
        }

    @property
    def tokens_used(self) -> int:
        """Tokens of the earlier rounds, if the endpoint reported them."""
        return sum(asked.tokens for attempts in self.rounds for each in attempts for asked in each.asked)

    def contract(self, trial: Trial) -> Contract:
        """The contract of a source that replaces this trial's."""
        implementation = self.spec.implementations[trial.variant.implementation]
        declared = read_text(self.repository / implementation.source)
        return contract_of(implementation, self.spec.problem, trial.variant.tunables, declared)

    def values(self, trial: Trial) -> dict[str, object]:
        """Values of the templates: the task, and one of its trials."""
        contract = self.contract(trial)
        own = self.spec.implementations[trial.variant.implementation].source
        first = best_of([each for each in self.trials if each.round == 0])
        by_variant = {each.variant.id: each for each in self.trials}
        module = self.brief.reference.partition(":")[0]
        return {
            "kernel": self.spec.kernel,
            "brief": self.brief,
            "language": contract.language,
            "fence": contract.fence,
            "signature": contract.signature,
            "contract": [*contract.lines, *promise_lines(self.brief)],
            "reference": cut(
                read_text(self.repository.joinpath(*module.split(".")).with_suffix(".py")), REFERENCE_AT_MOST
            ),
            "device": device_lines(self.brief),
            "exemplars": self._exemplars(),
            "headers": self._headers(trial, contract),
            "parent": {
                "text": cut(self.text(trial.variant), PARENT_AT_MOST),
                "lines": trial_lines(trial, own, first),
            },
            "history": history_lines(self.rounds, by_variant, own, first),
        }

    def _exemplars(self) -> list[dict[str, str]]:
        return [
            {
                "kernel": each.kernel,
                "implementation": each.implementation,
                "origin": each.origin,
                "licence": each.licence,
                "text": cut(read_text(self.repository / each.source), EXEMPLAR_AT_MOST),
            }
            for each in self.brief.exemplars
        ]

    def _headers(self, trial: Trial, contract: Contract) -> list[dict[str, str]]:
        folder = (self.repository / self.spec.implementations[trial.variant.implementation].source).parent
        return [
            {"name": name, "text": cut(read_text(folder / name), HEADER_AT_MOST)}
            for name in contract.includes
            if (folder / name).is_file()
        ]


def read_text(path: Path) -> str:
    """A file of the repository.

    Raises
    ------
    StoreError
        The file is gone since the plan was made.
    """
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


NEVER = frozenset({Outcome.TAMPERED, Outcome.OVER_ROOFLINE})
"""What cheats is not extended: its time says nothing, and its way is not to be followed."""
REPAIRS_AT_MOST = 2
"""How often a failed variant is extended: after that, others are worth more."""

_FAILED = {"generate": 0.0, "compile": 0.2, "verify": 0.3, "profile": 0.4}
"""Stage in which a variant failed -> its value for the tree, where the fastest has 1: the further it came."""
_UNTIMED = 0.5
"""Of a variant that passed where there is no device to measure it."""


def choose(
    agent: Agent, trials: Sequence[Trial], parents: Mapping[str, str | None], wanted: int
) -> list[Trial]:
    """`wanted` parents, possibly repeated; empty if no variant can be extended.

    `parents` maps the id of a variant to that of the variant that it was made from.
    """
    open_ones = _extendable(trials, parents)
    if not open_ones or wanted < 1:
        return []
    if agent.choosing == "tree":
        return _tree(agent, open_ones, parents, wanted)
    ranked = sorted(open_ones, key=_rank)
    width = 1 if agent.choosing == "best_of_n" else agent.width
    return [ranked[number % min(width, len(ranked))] for number in range(wanted)]


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The fastest trial; None if none was measured."""
    measured = [trial for trial in trials if trial.seconds is not None]
    return min(measured, key=_rank) if measured else None


def _extendable(trials: Sequence[Trial], parents: Mapping[str, str | None]) -> list[Trial]:
    children = Counter(parent for parent in parents.values() if parent is not None)
    seen: dict[str, Trial] = {}
    for trial in trials:
        failed = trial.outcome not in (Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE)
        spent = failed and children[trial.variant.id] >= REPAIRS_AT_MOST
        if trial.outcome not in NEVER and not spent:
            seen.setdefault(trial.variant.id, trial)
    return list(seen.values())


def _rank(trial: Trial) -> tuple[float, float, int, str]:
    """Order: measured trials by time, then passed ones without a time, then failures by stage."""
    seconds = trial.seconds.value if trial.seconds is not None else math.inf
    value = 1.0 if trial.seconds is not None else _value(trial, math.inf)
    return (-value, seconds, -trial.round, trial.variant.id)


def _value(trial: Trial, fastest: float) -> float:
    """Value of a trial in the tree search, between 0 and 1."""
    if trial.seconds is not None:
        return fastest / trial.seconds.value
    if trial.outcome is Outcome.DEVICE_UNAVAILABLE:
        return _UNTIMED
    return _FAILED[trial.stage]


def _tree(
    agent: Agent, trials: Sequence[Trial], parents: Mapping[str, str | None], wanted: int
) -> list[Trial]:
    best = best_of(trials)
    fastest = best.seconds.value if best is not None and best.seconds is not None else math.inf
    visits = Counter(parent for parent in parents.values() if parent is not None)
    chosen = []
    for _ in range(wanted):
        total = 1 + sum(visits.values())

        def score(trial: Trial, total: int = total) -> tuple[float, int, str]:
            looked = math.sqrt(math.log(total) / (1 + visits[trial.variant.id]))
            return (_value(trial, fastest) + agent.exploration * looked, trial.round, trial.variant.id)

        picked = max(trials, key=score)
        visits[picked.variant.id] += 1
        chosen.append(picked)
    return chosen
