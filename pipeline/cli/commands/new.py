"""`kernelmill new`: files to start from."""

import sys
from pathlib import Path
from typing import get_args

import click

from pipeline.cli.exit_codes import ExitCode

KINDS = ("elementwise", "reduction")
LANGUAGES = ("cpp", "triton")


@click.group("new")
def command() -> None:
    """Write the files of something new, which run at once."""


@command.command("kernel")
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), help="The example to start from.")
@click.option("--from", "function", metavar="MODULE:FUNCTION", help="A PyTorch function to start from.")
@click.option("--vector", "vectors", multiple=True, metavar="INPUT", help="An input of shape [cols].")
@click.option("--language", "languages", multiple=True, type=click.Choice(LANGUAGES), help="Default: both.")
@click.option("--description", default="", help="One sentence.")
def kernel(  # noqa: PLR0913, PLR0917  (one for each option)
    name: str,
    kind: str | None,
    function: str | None,
    vectors: tuple[str, ...],
    languages: tuple[str, ...],
    description: str,
) -> int:
    """Write yaml, reference, C++ and Triton source of a kernel; kernelmill verify NAME accepts them.

    The sources compute what the reference says, plainly: change the reference and the sources to what you
    need. With --from, the reference is a copy of your function on matrices [rows, cols], made of elementwise
    operations and reductions over the last dimension. Existing files are never overwritten.

    \b
    Examples:
      kernelmill new kernel swish
      kernelmill new kernel scaled_norm --from my_module:scaled_norm --vector weight
    """
    from pipeline.execution.scaffolding.kernel_files import EXAMPLES, KernelRequest, Kind, write_kernel

    if function is not None and kind is not None:
        raise click.UsageError("--from and --kind: one of the two")
    if function is None and kind is None:
        kind = _ask("What does it compute?", KINDS)
    chosen: Kind = next((each for each in get_args(Kind) if each == kind), "elementwise")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: modules of this folder
    request = KernelRequest(
        name=name,
        kind=chosen,
        function=function,
        vectors=vectors,
        languages=languages or LANGUAGES,
        description=description,
    )
    written = write_kernel(request, Path.cwd())
    for path in written:
        print(path)
    if "triton" in request.languages and not any(path.name == f"{name}_triton.py" for path in written):
        print("no Triton source: its interpreter lacks a function that the reference uses", file=sys.stderr)
    if function is None:
        example = EXAMPLES[chosen].rpartition("return ")[2].strip()
        print(f"an example, y = {example}: change kernels/{name}/reference.py and the sources")
    print(f"next: kernelmill verify {name}")
    return ExitCode.OK


def _ask(question: str, choices: tuple[str, ...]) -> str:
    """The first choice if nobody can answer."""
    if not sys.stdin.isatty():
        return choices[0]
    answer: str = click.prompt(question, type=click.Choice(choices), default=choices[0])
    return answer
