"""Kernels that take each element by itself. In: a kernel. Out: its parts; None where it is another kind."""

import ast
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.search.rewriting.triton_module import (
    Function,
    Module,
    assigned_in,
    body_of,
    called,
    is_jit,
    names_in,
    parameters,
)

_BY_ELEMENT = frozenset(
    {
        *("tl.load", "tl.store", "tl.cast", "tl.where", "tl.maximum", "tl.minimum", "tl.clamp", "tl.abs"),
        *("tl.exp", "tl.exp2", "tl.log", "tl.log2", "tl.sqrt", "tl.rsqrt", "tl.sin", "tl.cos", "tl.erf"),
        *(
            "tl.sigmoid",
            "tl.fma",
            "tl.math.erf",
            "tl.math.exp",
            "tl.math.log",
            "tl.math.rsqrt",
            "tl.math.sqrt",
        ),
    }
)
_FORMS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Name, ast.Attribute, ast.Constant, ast.Call,
    ast.keyword, ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context,
    ast.Return,
)  # fmt: skip


class Elementwise(NamedTuple):
    """A kernel over elements `offsets` of flat tensors."""

    source: str
    """The parameter whose elements it works on."""
    target: str
    """The parameter that it stores to."""
    parameters: tuple[str, ...]
    """Those that the work needs."""
    locals: tuple[str, ...]
    offsets: str
    block: str
    """How many elements a program takes."""
    extent: str
    """The parameter that says how many there are."""
    body: tuple[ast.stmt, ...]
    """Its work, the store at the end; without offsets and mask."""

    def reads_result(self, load: ast.Call) -> bool:
        """Whether it loads an element of the source."""
        return _at(load.args[0], self.offsets) == self.source


def elementwise_of(module: Module, kernel: Function, sources: Sequence[str]) -> Elementwise | None:
    """`offsets = program_id(0) * BLOCK + arange(0, BLOCK)`, a mask, then work on single elements.

    `sources` are the parameters that get the tensor to work on.
    """
    body = body_of(kernel)
    offsets = _offsets(body[0]) if body else None
    work = list(body[1:])
    mask, count = (_mask(work[0], offsets) if work and offsets else None) or (None, "")
    work = work[1:]
    if offsets is None or mask is None or not work or not all(_by_element(module, each) for each in work):
        return None
    unmasked = _without_mask(work, mask)
    if unmasked is None:
        return None
    work, last = unmasked, unmasked[-1]
    stores = [node for each in work for node in ast.walk(each) if called(node) == "tl.store"]
    loads = [node for each in work for node in ast.walk(each) if called(node) == "tl.load"]
    read = {_at(node.args[0], offsets) for node in loads if isinstance(node, ast.Call)}
    found = [name for name in sources if name in read]
    if len(stores) != 1 or not (isinstance(last, ast.Expr) and last.value is stores[0]) or len(found) != 1:
        return None
    assert isinstance(stores[0], ast.Call)
    target = _at(stores[0].args[0], offsets)
    used = names_in(*work)
    known = tuple(name for name in parameters(kernel) if name in used)
    if target not in known or (mask in used) or assigned_in(*work) & {offsets, *parameters(kernel)}:
        return None
    if not all(_only_at_offsets(work, name, offsets) for name in {*sources, target}):
        return None
    return Elementwise(
        source=found[0], target=target, parameters=known, locals=tuple(sorted(assigned_in(*work))),
        offsets=offsets, block=_block(body[0]), extent=count, body=tuple(work),
    )  # fmt: skip


def _offsets(statement: ast.stmt) -> str | None:
    """The name of `tl.program_id(0) * B + tl.arange(0, B)`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            text = ast.unparse(value).replace("axis=0", "0")
            for node in ast.walk(value):
                if called(node) == "tl.arange" and isinstance(node, ast.Call) and len(node.args) == 2:
                    block = ast.unparse(node.args[1])
                    program = f"tl.program_id(0) * {block}", f"{block} * tl.program_id(0)"
                    wide = f"tl.program_id(0).to(tl.int64) * {block}"
                    if text in {f"{each} + tl.arange(0, {block})" for each in (*program, wide)}:
                        return name
    return None


def _block(statement: ast.stmt) -> str:
    """How many elements the offsets are."""
    ranges = [node for node in ast.walk(statement) if called(node) == "tl.arange"]
    return ast.unparse(ranges[0].args[1])  # type: ignore[attr-defined]


def _mask(statement: ast.stmt, offsets: str | None) -> tuple[str, str] | None:
    """The name of `offsets < n`, and `n`."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Compare(left=ast.Name(id=left), ops=[ast.Lt()], comparators=[ast.Name(id=count)]),
        ) if left == offsets:
            return name, count
    return None


def _without_mask(work: Sequence[ast.stmt], mask: str | None) -> list[ast.stmt] | None:
    """Copies whose loads and stores have no mask: they get that of the store they are merged into.

    None where one has another mask than that.
    """
    copies = ast.parse("\n".join(ast.unparse(each) for each in work)).body
    for node in (node for each in copies for node in ast.walk(each)):
        if called(node) in ("tl.load", "tl.store") and isinstance(node, ast.Call):
            if len(node.args) != (1 if called(node) == "tl.load" else 2):
                return None
            if any(each.arg == "mask" and ast.unparse(each.value) != mask for each in node.keywords):
                return None
            node.keywords = [each for each in node.keywords if each.arg != "mask"]
    return copies


def _by_element(module: Module, statement: ast.AST) -> bool:
    for node in ast.walk(statement):
        if not isinstance(node, _FORMS):
            return False
        if isinstance(node, ast.Call) and not _known(module, node):
            return False
    return True


def _known(module: Module, call: ast.Call) -> bool:
    """A function of single elements: of Triton, of the module, or a conversion."""
    name = called(call)
    if name in _BY_ELEMENT or (isinstance(call.func, ast.Attribute) and call.func.attr == "to"):
        return True
    own = module.functions.get(name)
    inside = names_in(own) if own is not None else set()
    recursive = own is not None and own.name in inside
    return (
        own is not None
        and is_jit(own)
        and not recursive
        and all(
            _by_element(module, each)
            and "tl.load" not in ast.unparse(each)
            and "tl.store" not in ast.unparse(each)
            for each in body_of(own)
        )
    )


def _at(pointer: ast.expr, offsets: str) -> str | None:
    """The parameter of `parameter + offsets`."""
    match pointer:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Name(id=at)) if at == offsets:
            return name
    return None


def _only_at_offsets(work: Sequence[ast.stmt], name: str, offsets: str) -> bool:
    """Whether the tensor is accessed at its own element only, or asked for its type."""
    meant = sum(
        isinstance(node, ast.BinOp) and _at(node, offsets) == name for each in work for node in ast.walk(each)
    )
    typed = sum(
        isinstance(node, ast.Attribute) and node.attr == "dtype" and ast.unparse(node.value) == name
        for each in work
        for node in ast.walk(each)
    )
    mentioned = sum(
        isinstance(node, ast.Name) and node.id == name for each in work for node in ast.walk(each)
    )
    return mentioned == meant + typed
