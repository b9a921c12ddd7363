"""One variant through compile, verify and profile. In: a task and a variant. Out: what the stages said of it.

The stages run as under Snakemake, each in a process that the warm worker forks: nothing of a candidate ever
comes near the process that trains. Their store is the checkout's, so that equal variants are judged once.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TypeVar

from pipeline.records.environment import that_end_with_this
from pipeline.records.errors import WorkerError
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import CompileSpec, TaskRow
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.collection import Result, is_default
from pipeline.records.results.compiled import CompileOutput
from pipeline.records.results.profiled import ProfileOutput
from pipeline.records.results.variant import Generated, Variant
from pipeline.records.results.verified import VerifyOutput
from pipeline.store.atomic import write_atomic

Output = TypeVar("Output", bound=Record)

STAGES = ("compile", "verify", "profile")
NAME = "environment"
"""Stem of the specs' copies: no key ends so, and what is written for them is no plan's output."""
_WORDS = 300  # letters of an error


class VariantEvaluation(Record, frozen=True, kw_only=True):
    """What came of a variant."""

    result: Result
    cut: Failure | None = None
    """The step's time was up, in this stage or before it."""
    stage: str
    """The last one that it reached."""

    @property
    def failure(self) -> Failure | None:
        """Why it did not pass."""
        return self.cut or self.result.failure

    @property
    def outcome(self) -> Outcome:
        """Of the last stage that it reached."""
        return self.failure.outcome if self.failure else Outcome.PASSED


class VariantEvaluator:
    """The stages of one task, in a scratch folder of its own."""

    def __init__(self, row: TaskRow, store: Path, scratch: Path, *, workers: int) -> None:
        self._row = row
        self._store = store.absolute()
        self._scratch = scratch
        self._folder = Path.cwd()  # of the sources that the specs name
        self._workers = workers
        self._spec = read_record(spec_path(store, "compile", row.compile), CompileSpec)
        for stage in STAGES:
            (scratch / stage).mkdir()
            shutil.copyfile(spec_path(store, stage, getattr(row, stage)), self._copy(stage))

    def judge(self, variant: Variant, seconds: float) -> VariantEvaluation:
        """Run the stages until one fails, or the time is up.

        Raises
        ------
        WorkerError
            A stage could not do its work, which is not the variant's fault.
        """
        deadline = time.monotonic() + seconds
        result = self._result(variant)
        write_atomic(self._scratch / "variants.json", to_json(self._generated(variant)))
        for stage in STAGES:
            if not self._run(stage, deadline):
                reason = f"the step took longer than {seconds:g} s, waiting for the device included"
                cut = Failure(outcome=Outcome.TIMEOUT, reason=reason)
                return VariantEvaluation(result=result, cut=cut, stage=stage)
            result = self._with(result, stage)
            if result.failure is not None:
                break
        return VariantEvaluation(result=result, stage=result.stage)

    def _generated(self, variant: Variant) -> Generated:
        return Generated(key=NAME, round=0, variants=(variant,), pruned=(), space={})

    def _result(self, variant: Variant) -> Result:
        return Result(
            task=self._row,
            round=0,
            variant=variant,
            id=variant.id,
            default=is_default(variant, self._spec),
            architecture=self._spec.target.architecture,
            features=self._spec.target.features,
        )

    def _with(self, result: Result, stage: str) -> Result:
        """The result with what a stage wrote. Made anew: it derives some of its fields."""
        kinds: dict[str, type[CompileOutput] | type[VerifyOutput] | type[ProfileOutput]] = {
            "compile": CompileOutput, "verify": VerifyOutput, "profile": ProfileOutput,
        }  # fmt: skip
        (record,) = read_record(self._output(stage), kinds[stage]).records
        known = {name: getattr(result, name) for name in ("task", "round", "variant", "id", "default")}
        known |= {name: getattr(result, name) for name in ("architecture", "features", *STAGES)}
        return Result(**(known | {stage: record}))

    def _run(self, stage: str, deadline: float) -> bool:
        """Whether it came to its end in time; killed, the client takes the stage with it."""
        self._output(stage).unlink(missing_ok=True)
        process = subprocess.Popen(
            self._command(stage),
            cwd=self._folder,
            env=that_end_with_this(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _, said = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(process)
        if process.returncode != 0:
            lines = said.decode(errors="replace").strip().splitlines()
            last = lines[-1][:_WORDS] if lines else f"exit code {process.returncode}"
            raise WorkerError(f"{stage}: {last}")
        return True

    def _command(self, stage: str) -> list[str]:
        files = {"--variants": self._scratch / "variants.json"} if stage == "compile" else {}
        if stage != "compile":
            files["--compiled"] = self._output("compile")
        if stage == "profile":
            files["--verified"] = self._output("verify")
        arguments = [word for option, path in files.items() for word in (option, str(path))]
        arguments += [] if stage == "profile" else ["--workers", str(self._workers)]
        spec = str(self._copy(stage))
        warm = ["--warm", spec] if stage == "compile" else []
        places = ["--spec", spec, "--out", str(self._output(stage)), "--root", str(self._store)]
        return [sys.executable, "-m", "pipeline.execution.workers.submit", *warm, stage, *places, *arguments]

    def _copy(self, stage: str) -> Path:
        return self._scratch / stage / f"{NAME}.json"

    def _output(self, stage: str) -> Path:
        return self._scratch / f"{stage}.json"


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5.0)
    if process.poll() is None:
        process.kill()
    if process.stderr is not None:
        process.stderr.close()
    process.wait()


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))
