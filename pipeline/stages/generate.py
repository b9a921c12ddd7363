"""generate: spaces and a search -> the variants of one round.

In: a GenerateSpec, and what compile, verify and profile wrote of the earlier rounds. Out: a Generated.

    python -m pipeline.stages.generate --spec S.json --history C0.json V0.json P0.json … --round 1
        --out O.json
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pipeline.records.configuration.search_settings import Stop
from pipeline.records.layout import output_path
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import read_record
from pipeline.records.results.variant import Generated
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Proposal, SourceRecord, Unfit
from pipeline.sandbox import stage_command
from pipeline.search.proposed_variants import variants_of
from pipeline.search.spaces.search_space import Point, Space, space_of
from pipeline.search.stopping_rules import left, stop
from pipeline.search.strategy import Budget, WriterContext
from pipeline.search.strategy_registry import proposer, strategy
from pipeline.search.trial_history import ROUND_FILES, read_history
from pipeline.search.variant_pruning import scale_of
from pipeline.store.outputs import put_output

HISTORY = "CompileOutput, VerifyOutput and ProfileOutput of each earlier round"


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.generate", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="GenerateSpec as JSON")
    parser.add_argument("--history", type=Path, nargs="*", default=[], help=HISTORY)
    parser.add_argument("--round", type=int, default=0, help="counted from 0")
    parser.add_argument("--out", type=Path, required=True, help="Generated to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: _generate_round(options))


def _generate_round(options: argparse.Namespace) -> None:
    started = time.monotonic()
    spec = read_record(options.spec, GenerateSpec)
    history: Sequence[Trial] = read_history(options.history)
    diagnose = strategy(spec.search.strategy).diagnose
    if diagnose is not None:
        history = diagnose(history, options.history, spec)
    generated = generate(spec, history, key=options.spec.stem, round_number=options.round, store=options.root)
    if spec.search.prune is not None and spec.search.prune.by_bound:
        measured = options.history[ROUND_FILES - 1 :: ROUND_FILES]
        generated = msgspec.structs.replace(generated, scale=scale_of(measured))
    put_output(options.out, "generate", generated, spec=options.spec)
    _report(generated, spec, time.monotonic() - started)


def generate(
    spec: GenerateSpec,
    history: Sequence[Trial],
    *,
    key: str,
    round_number: int,
    store: Path = Path("artifacts"),
) -> Generated:
    """The variants of one round; the same spec and history give the same variants.

    What the search writes is in the `store` afterwards.
    """
    space = space_of(spec)
    budget = Budget(
        round=round_number,
        rounds=spec.search.rounds,
        variants=left(spec.search, history),
        variants_per_round=spec.search.variants_per_round,
        seed=spec.search.seed,
        search=spec.search,
        starts=tuple((start.implementation, start.tunables) for start in spec.starts),
    )
    ended = stop(spec.search, history, round_number)
    earlier = _earlier(store, key, round_number)
    writer = WriterContext(
        spec=spec,
        repository=str(Path.cwd()),
        store=str(store),
        attempts=tuple(each.attempts if each else () for each in earlier),
        records=tuple(record for each in earlier if each for record in each.records),
    )
    proposals = [] if ended else _propose(space, history, budget, writer)
    if not proposals and ended is None:
        ended = Stop(kind="exhausted", reason=f"{spec.search.strategy} has nothing more to propose")
    say = strategy(spec.search.strategy).remarks
    made = variants_of(spec, proposals, repository=Path.cwd(), store=store)
    return Generated(
        key=key,
        round=round_number,
        variants=made.variants,
        records=made.records,
        unfit=made.unfit,
        attempts=made.attempts,
        pruned=tuple(pruned for subspace in space.subspaces for pruned in subspace.pruned()),
        space={subspace.implementation: subspace.size for subspace in space.subspaces},
        stop=ended,
        remarks=say(history, budget) if say and not ended else (),
    )


def _propose(
    space: Space, history: Sequence[Trial], budget: Budget, writer: WriterContext
) -> Sequence[Point | Proposal | Unfit]:
    name = writer.spec.search.strategy
    write = strategy(name).write
    return proposer(name)(space, history, budget) if write is None else write(space, history, budget, writer)


def _earlier(store: Path, key: str, round_number: int) -> tuple[Generated | None, ...]:
    """What this stage wrote in the earlier rounds; None where a round's file is not there."""
    paths = (output_path(store, "generate", key, number) for number in range(round_number))
    return tuple(read_record(path, Generated) if path.is_file() else None for path in paths)


def _report(generated: Generated, spec: GenerateSpec, seconds: float) -> None:
    count, size = len(generated.variants), sum(generated.space.values())
    plural = "" if count == 1 else "s"
    later = f", round {generated.round}" if generated.round else ""
    for each in generated.unfit:
        outcome, reason = each.failure.outcome, each.failure.reason
        print(f"generate {spec.kernel}{later}: {each.author.name}: {outcome}: {reason}", file=sys.stderr)
    for line in _grounds(generated.records):
        print(f"generate {spec.kernel}{later}: {line}", file=sys.stderr)
    for remark in generated.remarks:
        print(f"generate {spec.kernel}{later}: {remark}", file=sys.stderr)
    if generated.stop is not None:
        print(f"generate {spec.kernel}{later}: nothing: {generated.stop.reason}", file=sys.stderr)
        return
    print(
        f"generate {spec.kernel}{later}: {count} variant{plural} of a space of {size} · {seconds:.1f} s",
        file=sys.stderr,
    )


def _grounds(records: Sequence[SourceRecord]) -> Iterator[str]:
    """Why sources were rewritten: each finding of a parent once, with what it called for."""
    calls: dict[tuple[str, str], dict[str, list[str]]] = {}
    for record in records:
        details = record.author.details
        if "called_for_by" in details:
            finding = details["called_for_by"], details.get("finding", "")
            place = f"{record.author.name} in line {details['line']}"
            calls.setdefault(finding, {}).setdefault(details.get("because", ""), []).append(place)
    for (code, sentence), reasons in calls.items():
        yield f"{code} calls for" + (f": {sentence}" if sentence else "")
        for because, places in reasons.items():
            yield f"  {', '.join(places)}" + (f": {because}" if because else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
