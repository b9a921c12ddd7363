"""Files that are not what was written: a byte flipped, cut, emptied, or gone."""

import random
import shutil
from pathlib import Path

from tests.faults.fault import Injected, Missed, kind
from tests.faults.scene import Scene

MANNERS = ("flipped", "truncated", "empty", "deleted")


def _spoil(path: Path, numbers: random.Random) -> str:
    """Damage one file in one manner."""
    content = path.read_bytes()
    manner = numbers.choice(MANNERS)
    if not content and manner != "deleted":
        raise Missed("an empty file")
    if manner == "deleted":
        path.unlink()
    elif manner == "flipped":
        at = numbers.randrange(len(content))
        path.write_bytes(
            content[:at] + bytes([content[at] ^ (1 << numbers.randrange(8))]) + content[at + 1 :]
        )
    else:
        path.write_bytes(content[: numbers.randrange(len(content)) if manner == "truncated" else 0])
    return manner


def _at_rest(
    scene: Scene, numbers: random.Random, tree: str, patterns: tuple[str, ...], *, spoiled: bool = False
) -> Injected:
    """Damage one file that matches, in a tree where nothing runs."""
    scene.restore(tree)
    found = sorted(path for pattern in patterns for path in scene.artifacts.glob(pattern) if path.is_file())
    if not found:
        raise Missed(f"no {patterns[0]} in the tree of {tree}")
    path = numbers.choice(found)
    manner = _spoil(path, numbers)
    parts = path.relative_to(scene.artifacts).parts
    shown = "/".join(part if len(part) < 20 else "…" for part in parts)
    return Injected(f"{shown} {manner}, all up to {tree} done", None, spoiled=spoiled)


@kind("corrupt a binary")
def corrupt_a_binary(scene: Scene, numbers: random.Random) -> Injected:
    """Of a compiled variant that is still to be judged, or to be measured."""
    patterns = ("store/compile/*/*/*.so", "store/compile/*/*/*.cubin", "store/compile/*/*/*.ptx")
    return _at_rest(scene, numbers, numbers.choice(("compile", "verify")), patterns)


@kind("corrupt a record")
def corrupt_a_record(scene: Scene, numbers: random.Random) -> Injected:
    """Of a store entry that later stages lean on."""
    tree = numbers.choice(("compile", "verify"))
    return _at_rest(scene, numbers, tree, (f"store/{tree}/*/*/record.json", f"store/{tree}/*/*/seal.json"))


@kind("corrupt an output")
def corrupt_an_output(scene: Scene, numbers: random.Random) -> Injected:
    """What a stage tells the next one."""
    stage = numbers.choice(("generate", "compile", "verify", "profile"))
    tree = numbers.choice((stage, "report"))
    return _at_rest(scene, numbers, tree, (f"{stage}/*/round*.json", f"{stage}/*/round*.json.seal"))


@kind("corrupt the plan")
def corrupt_the_plan(scene: Scene, numbers: random.Random) -> Injected:
    """A spec, or the plan that is kept."""
    tree = numbers.choice(("plan", "compile", "report"))
    return _at_rest(scene, numbers, tree, ("plan/*/*.json", "plan/cache/*"))


@kind("corrupt the ceilings")
def corrupt_the_ceilings(scene: Scene, numbers: random.Random) -> Injected:
    """What was measured of the device, with its library; the measurements that used them go as well."""
    injected = _at_rest(scene, numbers, "profile", ("cache/ceilings/*/*",))
    _forget(scene, "profile")
    return injected._replace(spoiled=True)


@kind("corrupt a table")
def corrupt_a_table(scene: Scene, numbers: random.Random) -> Injected:
    """Of the aggregate, or its summary."""
    return _at_rest(scene, numbers, numbers.choice(("aggregate", "report")), ("aggregate/*/*",))


@kind("corrupt the report")
def corrupt_the_report(scene: Scene, numbers: random.Random) -> Injected:
    """Or what says where the results were tracked."""
    return _at_rest(scene, numbers, "report", ("report/*/*", "track/*/*"))


@kind("corrupt a measurement")
def corrupt_a_measurement(scene: Scene, numbers: random.Random) -> Injected:
    """A store entry of profile, its output gone, so that the next run looks for it."""
    injected = _at_rest(scene, numbers, "profile", ("store/profile/*/*/*",), spoiled=True)
    _forget(scene, "profile", entries=False)
    return injected


def _forget(scene: Scene, stage: str, *, entries: bool = True) -> None:
    """As if the stage had not come to its end."""
    for path in scene.artifacts.glob(f"{stage}/*/round*"):
        path.unlink()
    if entries:
        shutil.rmtree(scene.artifacts / "store" / stage)
