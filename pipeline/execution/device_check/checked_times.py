"""Right candidates, timed as `kernelmill judge --measure` does: time and speed-up over eager PyTorch."""

import random
from pathlib import Path

import msgspec

from pipeline.execution.device_check import checked_candidates
from pipeline.execution.device_check.check_processes import CheckSetting
from pipeline.execution.device_check.check_report import CheckAnswer
from pipeline.execution.device_check.checked_machine import CONF
from pipeline.measure.comparison.baselines import HostedBaseline
from pipeline.measure.comparison.bench import Bench
from pipeline.measure.comparison.bench_task import BenchTask
from pipeline.measure.hosting.measuring_messages import HostedModel
from pipeline.performance.quantities import seconds
from pipeline.plan.config.compose import composer
from pipeline.plan.config.groups import option_file
from pipeline.plan.config.schema import to_record
from pipeline.plan.local_machine import identity, read_machine
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Failure
from pipeline.records.record import digest_bytes

BASELINE = "eager"
_SEEDS = 1 << 31


def check_candidate_time(setting: CheckSetting) -> CheckAnswer:
    """Time one of `CANDIDATES` that is right; the subject is its name."""
    candidate = checked_candidates.CANDIDATES[setting.subject]
    if setting.device is None:
        return CheckAnswer(status="absent", detail=setting.absence)
    lacking = candidate.lacks()
    if lacking:
        return CheckAnswer(status="absent", detail=lacking)
    folder = Path(setting.folder).absolute() / f"time of {setting.subject}"
    folder.mkdir(parents=True, exist_ok=True)
    problem, path = checked_candidates.written(candidate, folder)
    model = HostedModel(problem=str(problem), seed=random.SystemRandom().randrange(_SEEDS))
    task = BenchTask(
        kind=setting.kind,
        device=identity(setting.kind, read_machine()),
        settings=_settings(),
        problem=None,
        reference=model,
        baselines=(HostedBaseline(name=BASELINE, hosted=model),),
        identity=digest_bytes(problem.read_bytes()),
        work=None,
    )
    with Bench(task, Path(setting.folder) / "store", folder) as bench:
        bench.prepare()
        hosted = msgspec.structs.replace(model, candidate=str(path), builds=True)
        result = bench.profile(hosted, folder)
    if isinstance(result, Failure):
        return CheckAnswer(status="failed", detail=f"{result.outcome}: {result.reason}")
    (comparison,) = result.comparisons
    found = comparison.speedup
    speedup = f"{found.value:.2f} ({found.low:.2f} – {found.high:.2f})"
    figures = {
        "time": seconds(result.time.value),
        "speed-up over eager PyTorch": speedup,
        "launch": str(result.timing.launch),
        "notes": "; ".join(result.notes),
    }
    return CheckAnswer(
        status="ok", detail=f"{figures['time']}; speed-up over eager PyTorch {speedup}", figures=figures
    )


def _settings() -> Profile:
    """Those of `profile=quick`, with one baseline."""
    with composer(CONF) as hydra:
        quick = to_record(hydra.option("profile", "quick"), Profile, option_file(CONF, "profile", "quick"))
    return msgspec.structs.replace(quick, baselines=(BASELINE,))
