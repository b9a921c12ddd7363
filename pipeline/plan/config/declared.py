"""Everything of one kind that conf/ declares: the folder in, records by name out."""

from pathlib import Path

from pipeline.plan.config.compose import composer
from pipeline.plan.config.options import OptionLoader
from pipeline.plan.config.overrides import Overrides
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.configuration.kernel import Kernel


def declared_kernels(conf: Path) -> dict[str, Kernel]:
    """Every kernel, with origin and licence of its implementations.

    Raises
    ------
    ConfigError
        A yaml is wrong.
    """
    with composer(conf) as hydra:
        return OptionLoader(hydra, hydra.reader.read(()), conf.parent).all_kernels()


def declared_hardware(conf: Path) -> dict[str, Hardware]:
    """Every hardware target; raises as `declared_kernels`."""
    with composer(conf) as hydra:
        return OptionLoader(hydra, Overrides(choices={}, values={}), conf.parent).all_hardware()
