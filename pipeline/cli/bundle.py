"""Run an experiment on a machine without network and bring its results home as one file.

python -m pipeline.cli.bundle pack experiment=gpu        here: project and libraries as one file, job.pyz
python3 job.pyz run                                  there: run it, and write results.kmb
python -m pipeline.cli.bundle show results.kmb           what it holds
python -m pipeline.cli.bundle ingest results.kmb  here: into the store, the tables, the report and MLflow

`python -m pipeline.cli.bundle run …` does the same as `job.pyz run` in a complete checkout.
"""

import argparse
import errno
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.execution.bundle import requirements
from pipeline.records.errors import KernelmillError

ROOT = Path("artifacts")
_FIXABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the system that say something of the user's disk, not of a bug."""


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the exit code: 1 where nothing came of it, 3 where some tasks did not end."""
    options = _parser().parse_args(arguments)
    try:
        requirements.check(requirements.RECORDS | (requirements.STAGES if options.command == "run" else {}))
        return _run(options)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in _FIXABLE:
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror} (started again, it goes on where it was)", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped: started again, it goes on where it was", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    from pipeline.execution.bundle import operations

    match options.command:
        case "pack":
            return operations.pack(options)
        case "run":
            return operations.run(options, ROOT)
        case "show":
            return operations.show(options.files)
        case _:
            return operations.ingest(options, ROOT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.cli.bundle",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="pack | run | show | ingest")
    _add_pack(subparsers.add_parser("pack", help="project and libraries as one file to run there"))
    _add_run(subparsers.add_parser("run", help="run an experiment without Snakemake, write its bundle"))
    show = subparsers.add_parser("show", help="what a bundle holds")
    show.add_argument("files", nargs="+", type=Path, metavar="FILE")
    _add_ingest(subparsers.add_parser("ingest", help="merge bundles into store, tables, report, MLflow"))
    return parser


def _add_pack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="as for python -m pipeline")
    parser.add_argument("--out", type=Path, default=Path("job.pyz"), help="default: %(default)s")
    parser.add_argument("--python", default="3.12", help="of the machine where it runs; default: %(default)s")
    parser.add_argument("--machine", choices=("x86_64", "aarch64"), help="of its processor; default: as here")
    parser.add_argument(
        "--with",
        dest="extras",
        action="append",
        default=[],
        metavar="LIBRARY",
        help="one more library, used only where that machine lacks it (cuda-core, …)",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="as for python -m pipeline")
    parser.add_argument("--out", type=Path, default=Path("results.kmb"), help="default: %(default)s")
    parser.add_argument("--minutes", type=float, help="stop then, and write what came to its end")
    parser.add_argument("--with-binaries", action="store_true", help="as far as the size allows")
    parser.add_argument("--limit", type=float, default=16.0, help="of the file, in MiB; default: %(default)g")


def _add_ingest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--tracking", help="option of conf/tracking; default: that of conf/config.yaml")
    parser.add_argument(
        "--replace", action="store_true", help="take the bundle's results where the store has later ones"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
