"""Fuse an elementwise kernel into the Triton kernel that stores its input.

The second kernel's work is done on the first one's tile while it is in registers: one launch and one round
trip to memory less.
"""

import ast
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation
from pipeline.search.rewriting.triton_module import (
    Function,
    Launch,
    Module,
    assigned_in,
    body_of,
    called,
    changed_copy,
    expression,
    is_jit,
    names_in,
    parameters,
    statements,
)

_PREFIX = "fused_"
_HARMLESS = ("triton.cdiv", "triton.next_power_of_2", "min", "max", "len")
_ASKED = ("numel", "stride", "size")


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


class _Pair(NamedTuple):
    first: Launch
    second: Launch
    store: ast.Expr
    """Of the first kernel's result."""
    work: Elementwise


def _find(source: Source) -> Iterator[Rewrite]:
    """Two successive launches, the second of which works on the first one's result only."""
    module = Module(source.text)
    launches = {kernel.name: module.launches(kernel) for kernel in module.kernels()}
    for host in module.functions.values():
        for first, second, between in _successive(host, launches):
            pair = _pair(module, first, second)
            if pair is not None and _harmless(between, pair):
                text = _fused(module, pair)
                yield Rewrite(name="fused epilogue", line=second.statement.lineno, text=text)


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.MEMORY_BOUND: "the result makes one way to memory, not two",
        FindingCode.LAUNCH_BOUND: "one launch in place of two",
        FindingCode.FAR_FROM_CEILINGS: "one launch in place of two, and the result is used in registers",
    },
    keeps=(
        "the second kernel takes each element by itself, at the address where the first one stores it, and "
        "rounded as that store does"
    ),
)


def _successive(
    host: Function, launches: dict[str, list[Launch] | None]
) -> Iterator[tuple[Launch, Launch, Sequence[ast.stmt]]]:
    """Pairs of successive launches, each the only launch of its kernel."""
    single = {id(found[0].statement): found[0] for found in launches.values() if found and len(found) == 1}
    for node in ast.walk(host):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(block, list):
                continue
            here = [at for at, statement in enumerate(block) if id(statement) in single]
            for one, other in itertools.pairwise(here):
                yield single[id(block[one])], single[id(block[other])], block[one + 1 : other]


def _pair(module: Module, first: Launch, second: Launch) -> _Pair | None:
    given, later = _arguments(first), _arguments(second)
    stores = [
        node for node in first.kernel.body if isinstance(node, ast.Expr) and called(node.value) == "tl.store"
    ]
    writes = [node for node in ast.walk(first.kernel) if called(node).startswith(("tl.store", "tl.atomic"))]
    if given is None or later is None or len(stores) != 1 or len(writes) != 1:
        return None
    assert isinstance(stores[0].value, ast.Call)
    target, _ = _address(stores[0].value.args[0])
    result = given.get(target)
    sources = [name for name, value in later.items() if result is not None and value == result]
    if not result or not result.isidentifier():
        return None
    work = elementwise_of(module, second.kernel, sources)
    if work is None or target not in parameters(first.kernel) or not _only_stored(first.kernel, target):
        return None
    if not _all_elements(second, work, result, later):
        return None
    if later[work.target] != result and later[work.target] in given.values():
        return None  # what other programs still read would be overwritten
    mentioned = names_in(first.kernel) | {each.arg for each in first.kernel.args.args}
    return (
        None if any(name.startswith(_PREFIX) for name in mentioned) else _Pair(first, second, stores[0], work)
    )


def _all_elements(launch: Launch, work: Elementwise, result: str, given: dict[str, str]) -> bool:
    """Whether the launch covers every element of the result, block by block."""
    count = given.get(work.extent, "")
    values = {
        ast.unparse(node.value)
        for node in ast.walk(launch.host)
        if isinstance(node, ast.Assign) and count in names_in(*node.targets)
    }
    counted = f"{result}.numel()"
    grid = f"triton.cdiv({count}, {given.get(work.block, work.block)})"
    return (count == counted or values == {counted}) and ast.unparse(launch.grid) == grid


def _only_stored(kernel: Function, target: str) -> bool:
    """Whether the kernel only stores its result and reads its type."""
    mentioned = sum(isinstance(node, ast.Name) and node.id == target for node in ast.walk(kernel))
    typed = sum(
        isinstance(node, ast.Attribute) and node.attr == "dtype" and ast.unparse(node.value) == target
        for node in ast.walk(kernel)
    )
    return mentioned == typed + 1


def _arguments(launch: Launch) -> dict[str, str] | None:
    """Parameter -> the host's expression."""
    names, call = parameters(launch.kernel), launch.call
    if not names or len(call.args) > len(names) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    found = {name: ast.unparse(value) for name, value in zip(names, call.args, strict=False)}
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        found[keyword.arg] = ast.unparse(keyword.value)
    return found


def _address(pointer: ast.expr) -> tuple[str, ast.expr | None]:
    """`base + offsets`: the base's name, and the rest of the sum."""
    terms: list[ast.expr] = []
    while isinstance(pointer, ast.BinOp) and isinstance(pointer.op, ast.Add):
        terms.append(pointer.right)
        pointer = pointer.left
    if not isinstance(pointer, ast.Name) or not terms:
        return "", None
    return pointer.id, expression(" + ".join(f"({ast.unparse(each)})" for each in reversed(terms)))


def _harmless(between: Sequence[ast.stmt], pair: _Pair) -> bool:
    """Whether the statements only compute sizes, so that the first launch may come after them."""
    used = names_in(pair.first.call)
    for statement in between:
        if not isinstance(statement, ast.Assign) or assigned_in(statement) & used:
            return False
        for node in ast.walk(statement.value):
            asked = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _ASKED
            )
            if isinstance(node, ast.Call) and not asked and called(node) not in _HARMLESS:
                return False
    return True


def _fused(module: Module, pair: _Pair) -> str:
    kernel, host = changed_copy(pair.first.kernel), changed_copy(pair.first.host)
    at = pair.first.kernel.body.index(pair.store)
    given, later = _arguments(pair.first), _arguments(pair.second)
    assert given is not None and later is not None
    new = [name for name in pair.work.parameters if name != pair.work.source]
    result = later[pair.work.source]
    renamed = {name: f"{_PREFIX}{name}" for name in (*new, *pair.work.locals)}
    store = kernel.body[at]
    assert isinstance(store, ast.Expr) and isinstance(store.value, ast.Call)
    target, offsets = _address(store.value.args[0])
    assert offsets is not None
    renamed |= {name: target for name in (pair.work.source, *new) if later[name] == result}
    annotations = {each.arg: each.annotation for each in pair.second.kernel.args.args}
    added = [name for name in new if renamed[name] != target]
    kernel.args.args += [ast.arg(arg=renamed[name], annotation=annotations[name]) for name in added]
    kernel.body[at : at + 1] = _epilogue(pair, store.value, renamed, (target, offsets))
    _rewrite_host(host, pair, {renamed[name]: later[name] for name in added})
    return module.with_functions({pair.first.kernel.name: [kernel], host.name: [host]})


def _epilogue(
    pair: _Pair, store: ast.Call, renamed: dict[str, str], address: tuple[str, ast.expr]
) -> list[ast.stmt]:
    """The statements that replace the store."""
    target, offsets = address
    mask = next((each.value for each in store.keywords if each.arg == "mask"), None)
    if mask is None and len(store.args) > 2:
        mask = store.args[2]
    value = ast.unparse(store.args[1])
    lines = statements(
        f"{_PREFIX}place = {ast.unparse(offsets)}\n{_PREFIX}value = ({value}).to({target}.dtype.element_ty)"
    )
    own = renamed.get(pair.work.target, pair.work.target) == target
    kept: list[ast.stmt] = [] if own else [ast.Expr(value=store)]
    moved = _Moved(pair.work, renamed, mask)
    body = [moved.visit(each) for each in changed_statements(pair.work.body)]
    return [*lines, *kept, *body]


def changed_statements(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Copies of the statements, to be changed."""
    return statements("\n".join(ast.unparse(each) for each in body))


class _Moved(ast.NodeTransformer):
    """Names, offsets and masks of the second kernel in terms of the first one's."""

    def __init__(self, work: Elementwise, renamed: dict[str, str], mask: ast.expr | None) -> None:
        self._work = work
        self._renamed = renamed
        self._mask = mask

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if called(node) == "tl.load" and self._work.reads_result(node):
            return expression(f"{_PREFIX}value")
        self.generic_visit(node)
        if called(node) in ("tl.load", "tl.store"):
            count = 1 if called(node) == "tl.load" else 2
            rest = [each for each in node.keywords if each.arg != "mask"]
            if self._mask is None:
                rest = [each for each in rest if each.arg != "other"]
            node.args = node.args[:count]
            node.keywords = [*([ast.keyword(arg="mask", value=self._mask)] if self._mask else []), *rest]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self._work.offsets:
            return expression(f"{_PREFIX}place")
        return ast.Name(id=self._renamed.get(node.id, node.id), ctx=node.ctx)


def _rewrite_host(host: Function, pair: _Pair, added: dict[str, str]) -> None:
    """Replace the second launch by the first one with more arguments."""
    (merged,) = statements(ast.unparse(pair.first.statement))
    assert isinstance(merged, ast.Expr) and isinstance(merged.value, ast.Call)
    merged.value.keywords += [ast.keyword(arg=name, value=expression(value)) for name, value in added.items()]
    wanted = ast.dump(pair.first.statement), ast.dump(pair.second.statement)
    for node in ast.walk(host):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            for statement in list(block) if isinstance(block, list) else ():
                assert isinstance(block, list)
                if ast.dump(statement) == wanted[0]:
                    block.remove(statement)
                elif ast.dump(statement) == wanted[1]:
                    block[block.index(statement)] = merged


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
    """The number of offsets."""
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
    """Copies whose loads and stores have no mask: they get the mask of the store that they replace.

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
    """Whether a call works on single elements: of Triton, of the module, or a conversion."""
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
    """Whether the tensor is only accessed at its own element, or its type is read."""
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
