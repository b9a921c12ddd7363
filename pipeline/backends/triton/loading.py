"""Launch one variant: on the device, from the binaries that compile left, or in Triton's interpreter."""

import functools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import triton

from pipeline.backends.backend import CompileJob, LaunchError
from pipeline.backends.machine_code.binary_digest import binary_digest
from pipeline.backends.package_calls import CalledEntry
from pipeline.backends.triton.compilation import KEPT, kept_name
from pipeline.backends.triton.compiler_isolation import settle_environment
from pipeline.backends.triton.entry_source import Entry, constants, load_entry
from pipeline.backends.triton.execution_mode import interpreting
from pipeline.backends.triton.triton_internals import cache_manager
from pipeline.records.planning.problem import Problem
from pipeline.records.results.compiled import Compiled

if TYPE_CHECKING:
    import torch

    from pipeline.backends.backend import Launch


def load(job: CompileJob, compiled: Compiled, root: Path, folder: Path) -> "Launch":
    """The implementation's own launch; in the interpreter where TRITON_INTERPRET was set before the import.

    Raises
    ------
    LaunchError
        There is no device of the target's kind.
    """
    if interpreting():
        from pipeline.backends.triton.interpretation.interpreter import mend

        mend()
        return _plain(load_entry(job, root), constants(job))
    import torch

    if not torch.cuda.is_available():
        raise LaunchError(f"no {job.target.kind} device here")
    return _on_device(job, compiled, root, folder)


def _on_device(job: CompileJob, compiled: Compiled, root: Path, folder: Path) -> "Launch":
    """An ordinary launch, whose first calls are checked.

    Triton's cache starts with the binaries of the compile stage in it, so on the workload's shape they are
    found and run, not compiled again. That is checked: whatever Triton loads for that shape must have the
    digest of one of those binaries. Other shapes (verify's edge cases) may specialise differently and compile
    kernels of their own.
    """
    cache = tempfile.TemporaryDirectory(prefix="kernelmill-triton-")
    settle_environment(Path(cache.name))
    known = seed_cache(compiled, folder)
    loaded: list[str] = []
    triton.knobs.compilation.listener = functools.partial(note_group, loaded)
    entry, rest = load_entry(job, root), constants(job)
    unchecked = True

    def launch(tensors: "dict[str, torch.Tensor]") -> None:
        nonlocal unchecked
        _call(entry, tensors, rest)
        if unchecked and is_workload(job.problem, tensors):
            unchecked = False
            require_known(loaded, known)
        loaded.clear()

    if isinstance(entry, CalledEntry):
        launch.timed = lambda tensors: _call(entry.bare, tensors, rest)  # type: ignore[attr-defined]
    launch.cache = cache  # type: ignore[attr-defined]  # lives as long as the launch, then is removed
    return launch


def _plain(entry: Entry, rest: dict[str, Any]) -> "Launch":
    def launch(tensors: "dict[str, torch.Tensor]") -> None:
        _take(entry(**tensors, **rest), tensors)

    return launch


def _take(strange: "dict[str, torch.Tensor] | None", tensors: "dict[str, torch.Tensor]") -> None:
    """Show what did not fit in place of its output, so that the outputs show it."""
    tensors.update(strange or {})


def _call(entry: Entry, tensors: "dict[str, torch.Tensor]", rest: dict[str, Any]) -> None:
    try:
        _take(entry(**tensors, **rest), tensors)
    except triton.OutOfResources as error:
        raise LaunchError(f"{error.name}: got {error.required}, the device has {error.limit}") from error
    except RuntimeError as error:
        if "Triton Error" in str(error):  # the driver refused the launch
            raise LaunchError(str(error)) from error
        raise


def is_workload(problem: Problem, tensors: "dict[str, torch.Tensor]") -> bool:
    """Whether these are the tensors that compile specialised for: shape, contiguous, aligned to 16 bytes."""
    return all(
        tuple(tensors[name].shape) == problem.shape(name)
        and tensors[name].is_contiguous()
        and tensors[name].data_ptr() % 16 == 0
        for name in problem.tensors
    )


def seed_cache(compiled: Compiled, folder: Path) -> frozenset[str]:
    """Put the compile stage's results into Triton's cache; returns the digests of the binaries."""
    digests = set()
    for number, function in enumerate(compiled.functions):
        key = json.loads((folder / kept_name(number, "json")).read_bytes())["hash"]
        manager = cache_manager(key)
        group = {}
        for stage in KEPT:
            file = folder / kept_name(number, stage)
            if file.is_file():
                group[f"{function}.{stage}"] = manager.put(file.read_bytes(), f"{function}.{stage}")
                if stage in ("cubin", "hsaco"):
                    digests.add(binary_digest(file.read_bytes()))
        manager.put_group(f"{function}.json", group)
    return frozenset(digests)


def note_group(loaded: list[str], *, metadata_group: dict[str, str], **_: object) -> None:
    """Called by Triton for every kernel that it compiles or finds."""
    for name, path in metadata_group.items():
        if name.endswith((".cubin", ".hsaco")):
            loaded.append(binary_digest(Path(path).read_bytes()))


def require_known(loaded: list[str], known: frozenset[str]) -> None:
    """Raises LaunchError if a digest of `loaded` is none of those that compile kept."""
    strange = [digest for digest in loaded if digest not in known]
    if strange:
        raise LaunchError(
            f"the device runs another binary than the one that was compiled: got {', '.join(strange)}, "
            f"expected one of {', '.join(sorted(known))}; compile again with this version of triton"
        )
