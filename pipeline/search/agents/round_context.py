"""What agents work on in one round: the task, what was tried, and the texts that their prompts show."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.records.errors import StoreError
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.results.variant import Variant
from pipeline.records.search.brief import Brief
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.search_trial import Trial
from pipeline.search.agents.agent_settings import Agent
from pipeline.search.agents.attempt_selection import best_of
from pipeline.search.agents.kernel_contract import Contract, contract_of
from pipeline.search.agents.prompt_text import device_lines, history_lines, promise_lines, trial_lines
from pipeline.search.agents.prompts import cut

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
    """Attempts of the earlier rounds, from the first one on."""
    round: int
    wanted: int
    """Attempts of this round at most."""
    seed: int
    repository: Path
    text: Callable[[Variant], str]
    """Source of a variant."""

    @property
    def parents(self) -> dict[str, str | None]:
        """Id of a variant -> that of the one it came of."""
        return {
            attempt.variant: attempt.parent
            for attempts in self.rounds
            for attempt in attempts
            if attempt.variant is not None
        }

    @property
    def tokens_used(self) -> int:
        """In the earlier rounds, as far as they are known."""
        return sum(asked.tokens for attempts in self.rounds for each in attempts for asked in each.asked)

    def contract(self, trial: Trial) -> Contract:
        """What a source in this trial's place keeps to."""
        implementation = self.spec.implementations[trial.variant.implementation]
        declared = read_text(self.repository / implementation.source)
        return contract_of(implementation, self.spec.problem, trial.variant.tunables, declared)

    def values(self, trial: Trial) -> dict[str, object]:
        """What the templates show of a trial and of the task."""
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
        It is gone, though the plan saw it.
    """
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error
