"""A task with a store of its own, through which written sources go: from generate to profile."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.plan.plan_cache import current_plan
from pipeline.records.layout import output_path, spec_path
from pipeline.records.outcome import Failure
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record, read_record
from pipeline.records.results.compiled import CompileOutput
from pipeline.records.results.profiled import ProfileOutput
from pipeline.records.results.variant import Generated
from pipeline.records.results.verified import VerifyOutput
from pipeline.records.search.written_source import Author, Proposal, WrittenSource
from pipeline.search.proposed_variants import variants_of
from pipeline.search.spaces.search_space import space_of
from pipeline.store.outputs import put_output

AUTHOR = Author(writer="candidates", name="test")
Start = Callable[[str, str], list[str]]
"""Stage and its spec -> what Python is started with."""


def warm(stage: str, spec: str) -> list[str]:
    """In the warm worker, as the workflow starts it."""
    return ["pipeline.execution.workers.submit", *(["--warm", spec] if stage == "compile" else []), stage]


def cold(stage: str, spec: str) -> list[str]:
    """In a process of its own."""
    return [f"pipeline.stages.{stage}"]


class Task:
    """One task, whose variants are what a test writes."""

    def __init__(self, store: Path, *lines: str) -> None:
        self.store = store
        self.row = current_plan(lines, root=Path.cwd(), store=store).tasks[0].row
        self.spec = read_record(spec_path(store, "generate", self.row.generate), GenerateSpec)

    def proposal(self, implementation: str, text: str, *, parents: Sequence[str] = ()) -> Proposal:
        """A text at the implementation's first valid point."""
        space = next(each for each in space_of(self.spec).subspaces if each.implementation == implementation)
        points = space.points()
        tunables = space.default if space.default in points else points[0]
        source = WrittenSource(text=text, author=AUTHOR, parents=tuple(parents))
        return Proposal(implementation=implementation, tunables=tunables, source=source)

    def declared(self, implementation: str) -> str:
        """The declared text."""
        return Path(self.spec.implementations[implementation].source).read_text()

    def generate(self, *proposals: Proposal) -> Generated:
        """What generate writes for these proposals."""
        made = variants_of(self.spec, proposals, repository=Path.cwd(), store=self.store)
        generated = Generated(
            key=self.row.generate, round=0, variants=made.variants, pruned=(), space={},
            records=made.records, unfit=made.unfit,
        )  # fmt: skip
        path = output_path(self.store, "generate", self.row.generate, 0)
        put_output(path, "generate", generated, spec=spec_path(self.store, "generate", self.row.generate))
        return generated

    def run(self, stage: str, start: Start = warm) -> subprocess.CompletedProcess[str]:
        """One stage to its end."""
        inputs = {
            "compile": {"--variants": "generate"},
            "verify": {"--compiled": "compile"},
            "profile": {"--compiled": "compile", "--verified": "verify"},
        }[stage]
        spec = str(spec_path(self.store, stage, self._key(stage)))
        arguments = ["--spec", spec]
        for option, earlier in inputs.items():
            arguments += [option, str(self._output(earlier))]
        arguments += ["--out", str(self._output(stage)), "--root", str(self.store)]
        command = [sys.executable, "-m", *start(stage, spec), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)

    def ends(self, *stages: str, start: Start = warm) -> list[str]:
        """Run the stages; how each variant ended, `passed` or `stage: outcome`, in their order."""
        for stage in stages:
            ended = self.run(stage, start)
            assert ended.returncode == 0, ended.stderr
        variants = [variant.id for variant in self.read("generate").variants]
        ends = dict.fromkeys(variants, "passed")
        for stage in stages:
            for record in self.read(stage).records:
                if isinstance(record.result, Failure):
                    ends[record.variant.id] = f"{stage}: {record.result.outcome.value}"
        return [ends[each] for each in variants]

    def reasons(self, stage: str) -> list[str]:
        """Why each variant that has a record of the stage failed; empty for one that passed."""
        results = [record.result for record in self.read(stage).records]
        return [each.reason if isinstance(each, Failure) else "" for each in results]

    def read(self, stage: str) -> Record:
        """A stage's output."""
        kinds = {
            "generate": Generated, "compile": CompileOutput, "verify": VerifyOutput, "profile": ProfileOutput,
        }  # fmt: skip
        return read_record(self._output(stage), kinds[stage])

    def _key(self, stage: str) -> str:
        return getattr(self.row, stage)

    def _output(self, stage: str) -> Path:
        return output_path(self.store, stage, self._key(stage), 0)
