"""Export what was found out as a data set, for those who train models: reference, kernel, feedback and trace.

python -m pipeline.cli.export --out dataset                            what verified, in JSON Lines
python -m pipeline.cli.export --out dataset --format parquet           the same in Parquet
python -m pipeline.cli.export --out dataset --failures                 with what did not verify, and why
python -m pipeline.cli.export --out dataset --experiment smoke         one experiment, by its name or key
python -m pipeline.cli.export --out dataset --declare llm=CC0-1.0      your licence for what you had written

The folder holds rows, pairs (one problem on two platforms), files (what sources include), schema.json and a
card (README.md). A text without a licence is left out unless --unlicensed is given.
See docs/guide/data_export.md.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pipeline.interop.dataset.dataset_export import Wanted, export
from pipeline.interop.dataset.source_texts import Licensing
from pipeline.interop.dataset.table_files import FORMATS
from pipeline.performance.quantities import counted
from pipeline.plan.config.compose import composer
from pipeline.plan.config.options import OptionLoader
from pipeline.records.errors import ConfigError, KernelmillError
from pipeline.records.kernel import Kernel
from pipeline.records.written import Writer


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.cli.export",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    parser.add_argument("--experiment", metavar="NAME", help="one experiment (default: all)")
    parser.add_argument("--format", choices=FORMATS, default="jsonl", help="default: jsonl")
    parser.add_argument("--failures", action="store_true", help="with variants that did not verify")
    parser.add_argument("--unlicensed", action="store_true", help="with texts whose licence nobody knows")
    parser.add_argument(
        "--declare", action="append", default=[], metavar="WRITER=LICENCE", help="for sources of a search"
    )
    options = parser.parse_args(list(arguments))
    try:
        licensing = Licensing(unlicensed=options.unlicensed, declared=_declared(options.declare))
        wanted = Wanted(
            root=str(options.root),
            out=str(options.out),
            experiment=options.experiment,
            form=options.format,
            failures=options.failures,
            licensing=licensing,
            command=shlex.join(["python", "-m", "pipeline.cli.export", *arguments]),
        )
        tables = export(wanted, declared_kernels(Path.cwd()), Path.cwd())
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    made = {"row": tables.rows, "pair": tables.pairs, "file": tables.files}
    print(f"{options.out}: {', '.join(counted(count, what) for what, count in made.items())}")
    left_out = {
        "that did not verify": counted(tables.left_out, "variant"),
        "that were recorded elsewhere": counted(tables.replayed, "variant"),
        "that came to no variant": counted(tables.sourceless, "proposal"),
        "without an end": counted(tables.unfinished, "task"),
    }
    print(f"left out  {', '.join(f'{count} {what}' for what, count in left_out.items())}")
    print(f"card      {options.out / 'README.md'}")
    return 0


def declared_kernels(folder: Path) -> dict[str, Kernel]:
    """Every kernel of a checkout, with origin and licence of its implementations.

    Raises
    ------
    ConfigError
        A yaml is wrong.
    """
    with composer(folder / "conf") as hydra:
        return OptionLoader(hydra, hydra.reader.read(()), folder).all_kernels()


def _declared(lines: Sequence[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        name, separator, licence = line.partition("=")
        if not separator or not licence or name not in get_args(Writer):
            known = ", ".join(get_args(Writer))
            raise ConfigError(f"--declare {line}: expected WRITER=LICENCE, the writer one of {known}")
        found[name] = licence
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
