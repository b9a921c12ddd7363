"""generate: spaces and a search -> the variants of one round.

In: a GenerateSpec and what the earlier rounds measured (ProfileOutput files). Out: a Generated.

    python -m pipeline.stages.generate --spec S.json --history P0.json … --round 1 --out O.json
"""

import argparse
import sys
import time
from pathlib import Path

from pipeline.records.profiled import ProfileOutput, ProfileRecord
from pipeline.records.record import read_record
from pipeline.records.specs import GenerateSpec
from pipeline.records.variant import Generated
from pipeline.search.registry import strategy
from pipeline.search.space import space_of
from pipeline.search.strategy import Budget
from pipeline.search.variants import variants_of
from pipeline.store.outputs import put_output
from pipeline.workers import command


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.generate", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="GenerateSpec as JSON")
    parser.add_argument("--history", type=Path, nargs="*", default=[], help="ProfileOutput of earlier rounds")
    parser.add_argument("--round", type=int, default=0, help="counted from 0")
    parser.add_argument("--out", type=Path, required=True, help="Generated to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    return command.run(lambda: _generate_round(options))


def _generate_round(options: argparse.Namespace) -> None:
    started = time.monotonic()
    spec = read_record(options.spec, GenerateSpec)
    history = [record for path in options.history for record in read_record(path, ProfileOutput).records]
    generated = generate(spec, history, key=options.spec.stem, round_number=options.round, store=options.root)
    put_output(options.out, "generate", generated, spec=options.spec)
    _report(generated, spec, time.monotonic() - started)


def generate(
    spec: GenerateSpec,
    history: list[ProfileRecord],
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
        variants=spec.search.variants_per_round,
        seed=spec.search.seed,
    )
    points = strategy(spec.search.strategy)(space, history, budget)
    made = variants_of(spec, points, repository=Path.cwd(), store=store)
    return Generated(
        key=key,
        round=round_number,
        variants=made.variants,
        records=made.records,
        unfit=made.unfit,
        pruned=tuple(pruned for subspace in space.subspaces for pruned in subspace.pruned()),
        space={subspace.implementation: subspace.size for subspace in space.subspaces},
    )


def _report(generated: Generated, spec: GenerateSpec, seconds: float) -> None:
    count, size = len(generated.variants), sum(generated.space.values())
    plural = "" if count == 1 else "s"
    later = f", round {generated.round}" if generated.round else ""
    print(
        f"generate {spec.kernel}{later}: {count} variant{plural} of a space of {size} · {seconds:.1f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
