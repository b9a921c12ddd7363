"""The table of faults: results in, Markdown out; and which faults a table lists as not kept."""

import re
from collections.abc import Mapping, Sequence

from tests.faults.judging import Result

SHOWN = 3  # examples of each kind
WIDTH = 150  # letters of what a user saw


def table(results: Sequence[Result], skipped: Mapping[str, str], command: str) -> str:
    """The page."""
    failed = [result for result in results if result.problems]
    lines = [
        "# Fault injection",
        "",
        f"`{command}`: {len(results)} faults injected, {len(failed)} with a violated guarantee.",
        "The guarantees, and how they are tested: [faults and recovery](../guide/faults.md).",
        "",
        "| fault | injected | guarantees kept | exit code 0 | the next run |",
        "|---|---:|---:|---:|---|",
    ]
    for kind in dict.fromkeys(result.kind for result in results):
        lines.append(_row(kind, [result for result in results if result.kind == kind]))
    lines += [f"| {kind} | skipped: {reason} | | | |" for kind, reason in skipped.items()]
    lines += ["", "## Examples", ""]
    lines += [
        "| fault | seed | when | exit code | message | the next run |",
        "|---|---:|---|---:|---|---|",
    ]
    for kind in dict.fromkeys(result.kind for result in results):
        lines += [_example(result) for result in _different([each for each in results if each.kind == kind])]
    lines += ["", "## Violated guarantees", ""]
    lines += [
        f'- `--only "{each.kind}" --seed {each.seed} --count 1` ({each.where}): {"; ".join(each.problems)}'
        for each in failed
    ]
    return "\n".join(lines if failed else [*lines, "None."]) + "\n"


def section(page: str, title: str) -> str:
    """The same as a part of another page: headings one deeper, the first one with a title of its own."""
    first, _, rest = page.partition("\n")
    assert first.startswith("# "), first
    return f"## {title}\n" + re.sub(r"^#", "##", rest, flags=re.MULTILINE)


def listed(page: str) -> list[tuple[str, int]]:
    """Kind and seed of each fault where a promise was not kept, by the page's own list."""
    found = re.findall(r'^- `--only "([^"]+)" --seed (\d+) --count 1`', page, re.MULTILINE)
    return [(kind, int(seed)) for kind, seed in found]


def _row(kind: str, results: Sequence[Result]) -> str:
    kept = sum(not result.problems for result in results)
    ended = sum(result.code == 0 for result in results)
    runs = sum(result.code is not None for result in results)
    done = [result.next for result in results]
    common = max(set(done), key=done.count)
    others = len(set(done)) - 1
    more = f" (and {others} other ways)" if others else ""
    zero = f"{ended} of {runs}" if runs else "at rest"
    return f"| {kind} | {len(results)} | {kept} | {zero} | {common}{more} |"


def _different(results: Sequence[Result]) -> list[Result]:
    """A few that show different lines."""
    found: dict[str, Result] = {}
    for result in results:
        found.setdefault(result.said[:40], result)
    return list(found.values())[:SHOWN]


def _example(result: Result) -> str:
    said = result.said.replace("|", "\\|")
    said = f"{said[:WIDTH]}…" if len(said) > WIDTH else said
    code = "" if result.code is None else str(result.code)
    return (
        f"| {result.kind} | {result.seed} | {result.where} | {code} | {said or '(nothing)'} | {result.next} |"
    )
