"""`kernelmill sweep`: the command line in, Hydra's multirun, an exit code out.

Hydra composes a configuration of the whole sweep first, and would refuse a value in an option that only the
experiment names (`workload.dimensions.tokens=64`). What a sweep lists, Hydra leaves to its jobs; so such a
value is handed on as a list of one.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from pipeline.plan.config.overrides import check_sweep, read_override
from pipeline.records.environment import let_hydra_raise
from pipeline.records.errors import ConfigError, KernelmillError, hint

WRONG = 2  # the command line or the configuration, as `pipeline.cli.exit_codes` has it
ARGUMENTS = "hydra.launcher.arguments"


def multirun(arguments: Sequence[str], passed_on: Sequence[str], output: str = "progress") -> int:
    """Run the sweep; `passed_on` goes to Snakemake. Returns the exit code.

    Raises
    ------
    KeyboardInterrupt
        The user stopped it.
    """
    flags = [argument for argument in arguments if argument.startswith("-")]
    lines = [argument for argument in arguments if not argument.startswith("-")]
    try:
        check_sweep(lines, Path("conf"))
        _check_plugins(lines)
        lines = [*map(_left_to_the_jobs, lines), *_for_snakemake(passed_on, lines)]
        lines += [] if output == "progress" or _other_launcher(lines) else [f"hydra.launcher.output={output}"]
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG if isinstance(error, ConfigError) else 1
    return _hydra([*flags, *lines])


def _hydra(arguments: Sequence[str]) -> int:
    import hydra
    from hydra.core.hydra_config import HydraConfig

    from pipeline.plan.config.compose import HYDRA_VERSION, MISTAKES, PRIMARY, error_line

    @hydra.main(version_base=HYDRA_VERSION, config_path=str(Path("conf").absolute()), config_name=PRIMARY)
    def run(_: DictConfig) -> float | None:
        """Only other launchers call this, job by job."""
        from pipeline.execution.sweep.dag_launcher import run_alone

        config = HydraConfig.instance().cfg
        assert isinstance(config, DictConfig)
        return run_alone(config)

    sys.argv = ["kernelmill run", *arguments]
    tracebacks = let_hydra_raise()
    try:
        run()
    except (*MISTAKES, KernelmillError) as error:
        if tracebacks:
            raise
        print(f"error: {error_line(error)}", file=sys.stderr)
        return WRONG if isinstance(error, (*MISTAKES, ConfigError)) else 1
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def _check_plugins(lines: Sequence[str]) -> None:
    """The settings of our launcher and of our sweepers exist; those of others are Hydra's business."""
    from hydra_plugins.kernelmill_launcher import KernelmillLauncherConf, KernelmillSweeperConf
    from hydra_plugins.kernelmill_optuna import OptunaSweeperConf

    sweeper = OptunaSweeperConf if "hydra/sweeper=optuna" in lines else KernelmillSweeperConf
    for part, kind in (("launcher", KernelmillLauncherConf), ("sweeper", sweeper)):
        if any(line.startswith(f"hydra/{part}=") and line != "hydra/sweeper=optuna" for line in lines):
            continue
        known = [each.name for each in dataclasses.fields(kind) if not each.name.startswith("_")]
        for line in lines:
            key = line.partition("=")[0]
            name = key.removeprefix(f"hydra.{part}.").partition(".")[0]
            if key.startswith(f"hydra.{part}.") and name not in known:
                raise ConfigError(f"{line}: there is no '{name}' in hydra.{part}{hint(name, known)}")


def _left_to_the_jobs(line: str) -> str:
    """A value in one of our groups as a list of one."""
    override = read_override(line)
    if override.is_hydra_override() or override.is_sweep_override() or "." not in override.key_or_group:
        return line
    listed = f"{override.get_key_element()}=choice({override.get_value_element_as_str()})"
    try:
        read_override(listed)
    except ConfigError:  # an empty value: Hydra says what it thinks of it
        return line
    return listed


def _other_launcher(lines: Sequence[str]) -> bool:
    return any(line.startswith("hydra/launcher=") for line in lines)


def _for_snakemake(passed_on: Sequence[str], lines: Sequence[str]) -> list[str]:
    """What stands after `--`, as the launcher's setting."""
    if not passed_on:
        return []
    if any(line.lstrip("+").startswith(f"{ARGUMENTS}=") for line in lines):
        raise ConfigError(f"{ARGUMENTS}=…: the same is said after `--`: one of the two, please")
    return [f"{ARGUMENTS}=[{','.join(map(_quoted, passed_on))}]"]


def _quoted(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
