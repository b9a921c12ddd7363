"""A checkout of KernelBench: `KernelBench/level*/N_name.py`, candidates in `runs/<run>/`.

In: the checkout, its folder `KernelBench`, or one run of it. Out: problems `level1/23_Softmax`, candidates
`<run>.sample_0`, of one run only `sample_0`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.interop.problem_sets.converted_folder import ConvertedFolder
from pipeline.interop.problem_sets.problem_set_registry import ProblemSet
from pipeline.records.errors import ConfigError
from pipeline.verify.candidates.kernelbench import PROBLEM

_LEVEL = re.compile(r"level\d+")
_PROBLEM = re.compile(r"(\d+)_.+\.py")
_CANDIDATE = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_RUNS = "runs"


def convert(into: ConvertedFolder) -> None:
    """Add all problems, and the candidates of all runs or of one.

    Raises
    ------
    ConfigError
        It is a run outside of a checkout: its problems are not known.
    """
    given = into.source
    levels = _levels(given)
    if levels is None:
        raise ConfigError(
            f"{given}: looks like a run of KernelBench, which has to lie in the folder {_RUNS}/ of its "
            f"checkout, where the problems are: KernelBench/{_RUNS}/{given.name}"
        )
    into.allow(levels)
    names: dict[tuple[int, int], str] = {}
    for level in sorted(levels.iterdir()):
        if not _LEVEL.fullmatch(level.name):
            continue
        for path in sorted(level.glob("*.py"), key=_number):
            found = _PROBLEM.fullmatch(path.name)
            text = None if found is None else into.text(path)
            if found is None or text is None:
                continue
            name = f"{level.name}/{path.stem}"
            number = int(level.name.removeprefix("level")), int(found[1])
            if number in names:
                into.complain(path, f"{names[number]} has this number as well, this one is left out")
            elif into.add_problem(name, {"problem.py": text}, path):
                names[number] = name
    one = given.parent.name == _RUNS
    for run in [given] if one else _folders(levels.parent / _RUNS):
        _add_run(into, run, names, prefix="" if one else f"{run.name}.")


def _add_run(into: ConvertedFolder, run: Path, names: dict[tuple[int, int], str], prefix: str) -> None:
    candidates = 0
    for path in sorted(run.glob("*.py")):
        found = _CANDIDATE.fullmatch(path.name)
        if found is None:
            into.complain(path, "expected the name level_L_problem_N_sample_S_kernel.py, is left out")
            continue
        level, number, sample = (int(each) for each in found.groups())
        candidates += 1
        name = names.get((level, number))
        if name is None:
            into.complain(path, f"there is no problem {number} in level{level}, its candidate is left out")
            continue
        text = into.text(path)
        if text is not None:
            into.add_candidate(name, f"{prefix}sample_{sample}", text, path)
    if not candidates:
        into.complain(run, "a run without candidates (level_L_problem_N_sample_S_kernel.py)")


def _folders(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*")) if path.is_dir())


def _number(path: Path) -> tuple[int, str]:
    found = _PROBLEM.fullmatch(path.name)
    return (int(found[1]) if found else 0, path.name)


def _levels(folder: Path) -> Path | None:
    """The folder that holds `level*`."""
    places = [folder / "KernelBench", folder]
    if folder.parent.name == _RUNS:
        places.append(folder.parent.parent / "KernelBench")
    return next((place for place in places if any(_problems(place))), None)


def _is_run(folder: Path) -> bool:
    """Whether it holds candidates only, as it does if a run was copied from its checkout."""
    if any(folder.glob(f"*/{PROBLEM}")):
        return False
    return any(_CANDIDATE.fullmatch(path.name) for path in folder.glob("*.py"))


def _problems(place: Path) -> Iterator[Path]:
    return (path for path in place.glob("level*/*.py") if _PROBLEM.fullmatch(path.name))


KERNELBENCH = ProblemSet(
    name="KernelBench",
    description="KernelBench/level*/N_name.py and runs/<run>/level_L_problem_N_sample_S_kernel.py",
    recognizes=lambda folder: _levels(folder) is not None or _is_run(folder),
    convert=convert,
)
