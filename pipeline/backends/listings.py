"""The listings of a compiled variant, of any backend: its record and its files in, listings out."""

from pathlib import Path

from pipeline.backends.machine_code.listing import Listing
from pipeline.records.errors import StoreError
from pipeline.records.results.compiled import Compiled


def read_listings(compiled: Compiled, folder: Path) -> tuple[Listing, ...]:
    """One listing for each binary in the store entry `folder`.

    Raises
    ------
    StoreError
        The entry holds no machine code that can be listed, or came without it.
    ToolchainError
        A disassembler is missing.
    """
    names = [name for name in compiled.files if _is_listed(name)]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise StoreError(
            f"{folder}: has no {', '.join(missing)}: a bundle brought it without binaries (run it with "
            "--with-binaries there), or it is damaged; where its compiler is, snakemake --cores all compile "
            "makes it"
        )
    found = tuple(_read(folder / name) for name in names)
    if not found:
        raise StoreError(
            f"{folder}: holds no machine code (.cubin, .amdgcn or .so); it has {', '.join(compiled.files)}"
        )
    return found


def _is_listed(name: str) -> bool:
    return Path(name).suffix in (".cubin", ".amdgcn", ".so")


def _read(file: Path) -> Listing:
    if file.suffix == ".cubin":
        from pipeline.backends.machine_code.sass_listing import read_cubin

        ptx = file.with_suffix(".ptx")
        return read_cubin(file, ptx if ptx.is_file() else None)
    if file.suffix == ".amdgcn":
        from pipeline.backends.machine_code.amdgcn_listing import read_assembly

        return read_assembly(file)
    from pipeline.backends.cpp.object_listing import read_shared_object

    return read_shared_object(file.parent)
