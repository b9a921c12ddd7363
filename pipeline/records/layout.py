"""Paths under artifacts/: the same words, in the same order, as rules, stages and records."""

from pathlib import Path

STAGES = ("generate", "compile", "verify", "profile")


def spec_path(root: Path, stage: str, key: str) -> Path:
    """The spec of one stage, written by the plan."""
    return root / "plan" / stage / f"{key}.json"


def asked_path(spec: Path) -> Path:
    """Next to the spec of aggregate: the overrides of each job, as they were given last."""
    return spec.with_suffix(".asked")


def output_path(root: Path, stage: str, key: str, round_number: int) -> Path:
    """What one stage wrote for one round."""
    return root / stage / key / f"round{round_number}.json"


def entry_path(root: Path, stage: str, entry: str) -> Path:
    """Folder of one variant's stored record with its files."""
    return root / entry_name(stage, entry)


def entry_name(stage: str, entry: str) -> str:
    """Its path from the artifacts' root, with slashes."""
    return f"store/{stage}/{entry[:2]}/{entry}"
