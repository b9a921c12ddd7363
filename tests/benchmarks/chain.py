"""Generate, compile and verify one task in a store of its own. In: overrides. Out: its outputs."""

import subprocess
import sys
from pathlib import Path

from pipeline.plan.plan_cache import current_plan
from pipeline.records.layout import output_path, spec_path
from pipeline.records.planning.planned_tasks import PlannedTask
from tests.paths import ROOT


def run_chain(overrides: str, store: Path) -> tuple[PlannedTask, dict[str, Path]]:
    """The one task of these overrides, verified by one worker; stage -> what it wrote."""
    (task,) = current_plan(tuple(overrides.split()), root=ROOT, store=store).tasks
    outputs: dict[str, Path] = {}
    for stage, extra in (("generate", []), ("compile", []), ("verify", ["--workers=1"])):
        key = getattr(task.row, stage)
        outputs[stage] = output_path(store, stage, key, 0)
        before = {"generate": "--round=0", "compile": f"--variants={outputs['generate']}"}
        before["verify"] = f"--compiled={outputs.get('compile')}"
        paths = [f"--spec={spec_path(store, stage, key)}", f"--out={outputs[stage]}", f"--root={store}"]
        command = [sys.executable, "-m", f"pipeline.stages.{stage}", *paths, before[stage], *extra]
        subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)
    return task, outputs
