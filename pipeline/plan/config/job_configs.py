"""The configuration of each job of a sweep. In: the jobs' overrides. Out: plain configurations.

It is what Hydra composes for the job: the experiment with its settings, and the options of the axes that the
job chooses. Each distinct option is composed once, values are set on copies; a thousand jobs take a second.
"""

from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.config.compose import Composer, Compositions, composer
from pipeline.plan.config.groups import AXES
from pipeline.plan.config.values import Plain, applicable
from pipeline.records.record import Record


class JobConfig(Record, frozen=True, kw_only=True):
    """One job's configuration."""

    plain: Plain
    """By group; not to be changed: jobs share its parts."""
    choices: Plain
    """Group -> chosen option, of our groups and of Hydra's; None where none is chosen."""


def job_configs(
    jobs: Sequence[tuple[str, ...]], conf: Path, known: Compositions | None = None
) -> list[JobConfig]:
    """In the order of the jobs, whose overrides were found right.

    Raises
    ------
    ConfigError
        An override is wrong.
    """
    with composer(conf, known) as hydra:
        wanted: dict[str, list[str]] = {axis: [] for axis in AXES}
        for lines in jobs:
            for axis, names in hydra.reader.read(lines).choices.items():
                if axis in wanted:
                    wanted[axis] += names
        hydra.prepare(wanted)
        return [_of(hydra, lines) for lines in jobs]


def _of(hydra: Composer, lines: tuple[str, ...]) -> JobConfig:
    overrides = hydra.reader.read(lines)
    settings = hydra.settings(overrides)
    plain, choices = dict(settings.plain), dict(settings.choices)
    for axis in AXES:
        for name in overrides.choices.get(axis, ()):
            option = hydra.option(axis, name)
            taken = tuple(
                changed
                for line in overrides.values.get(axis, ())
                if (changed := applicable(line, axis, option))
            )
            plain[axis] = hydra.option(axis, name, taken)
            choices[axis] = name
    return JobConfig(plain=plain, choices=choices)
