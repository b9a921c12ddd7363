"""The shared store by hand: what is there, copy to it, copy from it. A run does both by itself.

python -m pipeline.cli.share status                       what is here, what is there
python -m pipeline.cli.share push                         all that is here and not there
python -m pipeline.cli.share pull [OVERRIDE ...]          what is there of a plan, as for python -m pipeline
python -m pipeline.cli.share pull --all                   everything that is there
python -m pipeline.cli.share check                        read all, take away what is damaged

The store is --store or $KERNELMILL_STORE: a path (/shared/kernelmill) or a URL of fsspec (s3://bucket/kernelmill).
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.plan.plan_cache import current_plan
from pipeline.records import environment
from pipeline.records.errors import KernelmillError, StoreError
from pipeline.records.layout import STAGES, spec_path
from pipeline.records.record import Record
from pipeline.store.outputs import bring_outputs, is_whole
from pipeline.store.parcel import SUFFIX
from pipeline.store.place import shown
from pipeline.store.shared import ENTRIES, OUTPUTS, RECORD, Shared, entry_name, output_name, shared_store

ENTRY_STAGES = (*STAGES, "mutate", "judge")


class Item(Record, frozen=True, kw_only=True):
    """An entry (of a stage, by its digest) or an output (of a stage, by key and round)."""

    stage: str
    key: str
    round: int | None = None
    """None for an entry."""

    @property
    def name(self) -> str:
        """What it is kept under."""
        if self.round is None:
            return entry_name(self.stage, self.key)
        return output_name(self.stage, self.key, self.round)


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the exit code: 1 where the store refused."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.cli.share",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("verb", choices=("status", "push", "pull", "check"))
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="pull: as for python -m pipeline")
    parser.add_argument("--all", action="store_true", help="pull: everything, not only what a plan asks for")
    parser.add_argument("--store", metavar="PATH|URL", help="the shared store (default: $KERNELMILL_STORE)")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the store of this checkout")
    options = parser.parse_args(arguments)
    if options.overrides and options.verb != "pull":
        parser.error(f"{options.verb} takes no overrides")
    try:
        if options.store:
            environment.use_shared_store(options.store)
        shared = shared_store()
        if shared is None:
            raise StoreError("no shared store: name it with --store PATH|URL or $KERNELMILL_STORE")
        for line in _lines(options, shared):
            print(line)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return int(shared.failed)


def _lines(options: argparse.Namespace, shared: Shared) -> Iterator[str]:
    if options.verb == "status":
        yield from _status(shared, options.root)
    elif options.verb == "push":
        yield from _push(shared, options.root)
    elif options.verb == "check":
        yield from _check(shared)
    elif options.all:
        yield from _pull_all(shared, options.root)
    else:
        plan = current_plan(tuple(options.overrides), root=Path.cwd(), store=options.root)
        count = bring_outputs(shared, [task.row for task in plan.tasks], options.root)
        yield f"{count} stage outputs came with what they name; the rest of this plan is here or is not there"


def _status(shared: Shared, root: Path) -> Iterator[str]:
    sizes = shared.place.sizes(ENTRIES) | shared.place.sizes(OUTPUTS)
    here = [item.name for item in _here(root)]
    yield f"{shown(shared.place.url)}: {len(sizes):,} files, {sum(sizes.values()) / 1e6:,.1f} MB"
    yield f"{'':18}{'here':>10}{'there':>10}{'only here':>11}{'only there':>12}"
    for kind, stages in ((ENTRIES, ENTRY_STAGES), (OUTPUTS, STAGES)):
        for stage in stages:
            ours = {name for name in here if name.startswith(f"{kind}/{stage}/")}
            theirs = {name for name in sizes if name.startswith(f"{kind}/{stage}/")}
            if ours or theirs:
                label = f"{stage} {'entries' if kind == ENTRIES else 'outputs'}"
                counts = (
                    f"{len(ours):>10,}{len(theirs):>10,}{len(ours - theirs):>11,}{len(theirs - ours):>12,}"
                )
                yield f"{label:18}{counts}"


def _push(shared: Shared, root: Path) -> Iterator[str]:
    there = shared.place.sizes(ENTRIES).keys() | shared.place.sizes(OUTPUTS).keys()
    missing = [item for item in _here(root) if item.name not in there]
    sent = sum(_put(shared, root, item) for item in missing)
    yield f"{sent:,} sent to {shown(shared.place.url)}, {len(missing) - sent:,} kept here"


def _put(shared: Shared, root: Path, item: Item) -> bool:
    if item.round is None:
        return shared.put_entry(root, item.stage, item.key)
    path = root / item.stage / item.key / f"round{item.round}.json"
    return shared.put_output(path, item.stage, item.key, item.round)


def _pull_all(shared: Shared, root: Path) -> Iterator[str]:
    items = _there(shared)
    entries = outputs = 0
    for stage in dict.fromkeys((*STAGES, *ENTRY_STAGES)):
        mine = [item for item in items if item.stage == stage]
        entries += shared.bring_entries(root, stage, [item.key for item in mine if item.round is None])
        outputs += shared.bring_outputs(
            root, stage, [(item.key, item.round) for item in mine if item.round is not None]
        )
    yield f"{entries:,} entries and {outputs:,} stage outputs came from {shown(shared.place.url)}"


def _check(shared: Shared) -> Iterator[str]:
    names = [item.name for item in _there(shared)]
    whole = shared.check(names)
    yield f"{whole:,} of {len(names):,} are whole; what is damaged was told and taken away"


def _here(root: Path) -> Iterator[Item]:
    """What could be shared: whole entries, and outputs whose key is that of their spec."""
    for stage in ENTRY_STAGES:
        for path in sorted((root / ENTRIES / stage).glob(f"*/*/{RECORD}")):
            yield Item(stage=stage, key=path.parent.name)
    for stage in STAGES:
        for path in sorted((root / stage).glob("*/round*.json")):
            key, number = path.parent.name, path.stem.removeprefix("round")
            if number.isdigit() and is_whole(spec_path(root, stage, key)):
                yield Item(stage=stage, key=key, round=int(number))


def _there(shared: Shared) -> list[Item]:
    items = []
    for name in sorted(shared.place.sizes(ENTRIES).keys() | shared.place.sizes(OUTPUTS).keys()):
        kind, stage, folder, last = (*name.removesuffix(SUFFIX).split("/"), "", "", "")[:4]
        number = last.removeprefix("round")
        if kind == ENTRIES:
            items.append(Item(stage=stage, key=last))
        elif number.isdigit():
            items.append(Item(stage=stage, key=folder, round=int(number)))
    return [item for item in items if item.name.endswith(SUFFIX) and item.stage and item.key]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
