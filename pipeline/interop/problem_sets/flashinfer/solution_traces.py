"""Export of verdicts as traces of flashinfer-bench: one JSON line for each workload that a solution met.

In: a data set, verdicts of its imported candidates. Out: JSONL. Their statuses are fewer than our outcomes;
the outcome and its reason stand in `log` and in `correctness.extra`. Nothing is invented: a verdict knows the
share of the derived bound, but neither their errors nor times, so errors are NaN and `performance` is null.
"""

import datetime
import importlib.metadata
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pipeline.interop.problem_sets.flashinfer.conversion import plain_name
from pipeline.interop.problem_sets.flashinfer.data_set import definitions, order, solutions, workloads
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.results.judged import Verdict

_STATUS = {
    Outcome.PASSED: "PASSED",
    Outcome.PASSED_REDUCED: "PASSED",  # its traces have no other word; the verdict names the sizes
    Outcome.WRONG_SHAPE: "INCORRECT_SHAPE",
    Outcome.WRONG_DTYPE: "INCORRECT_DTYPE",
    Outcome.WRONG_VALUE: "INCORRECT_NUMERICAL",
    Outcome.UNWRITTEN_OUTPUT: "INCORRECT_NUMERICAL",
    Outcome.NONDETERMINISTIC: "INCORRECT_NUMERICAL",
    Outcome.COMPILE_ERROR: "COMPILE_ERROR",
    Outcome.TIMEOUT: "TIMEOUT",
}
"""All other outcomes are RUNTIME_ERROR: the solution ran, and did what it must not."""
_COMPARED = ("PASSED", "INCORRECT_NUMERICAL")
_LIBRARIES = ("torch", "triton")


def write_traces(folder: Path, verdicts: Iterable[Verdict], out: Path) -> int:
    """Write the traces of a data set's verdicts; returns how many lines."""
    lines = [json.dumps(trace, sort_keys=True) for trace in traces(folder, verdicts)]
    out.write_text("".join(f"{line}\n" for line in lines))
    return len(lines)


def traces(folder: Path, verdicts: Iterable[Verdict]) -> Iterator[dict[str, Any]]:
    """One trace for each verdict and workload; verdicts of what the data set does not hold are left out."""
    given = workloads(folder)
    known = {each.name: each for _, each in definitions(folder) if not isinstance(each, ConfigError)}
    named = {
        (plain_name(each.definition), plain_name(each.name)): each
        for _, each in solutions(folder)
        if not isinstance(each, ConfigError)
    }
    now = datetime.datetime.now(datetime.UTC).isoformat()
    for verdict in verdicts:
        solution = named.get((verdict.problem, verdict.solution.removesuffix(".py")))
        if solution is None or solution.definition not in known:
            continue
        for workload in order(known[solution.definition], given.get(solution.definition, [])):
            yield {
                "definition": solution.definition,
                "workload": msgspec.to_builtins(workload),
                "solution": solution.name,
                "evaluation": _evaluation(verdict, now),
            }


def _evaluation(verdict: Verdict, now: str) -> dict[str, Any]:
    status = _STATUS.get(verdict.outcome, "RUNTIME_ERROR")
    log = verdict.outcome.value if not verdict.reason else f"{verdict.outcome.value}: {verdict.reason}"
    return {
        "status": status,
        "environment": {"hardware": verdict.device or "unknown", "libs": _libraries()},
        "timestamp": now,
        "log": log,
        "correctness": _correctness(verdict) if status in _COMPARED else None,
        "performance": None,
    }


def _correctness(verdict: Verdict) -> dict[str, Any]:
    return {
        "max_relative_error": "NaN",
        "max_absolute_error": "NaN",
        "extra": {
            "outcome": verdict.outcome.value,
            "share_of_bound": verdict.share,
            "checks": list(verdict.checks),
            "where": verdict.where,
            "compiled_for": verdict.compiled_for,
        },
    }


def _libraries() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in _LIBRARIES}
