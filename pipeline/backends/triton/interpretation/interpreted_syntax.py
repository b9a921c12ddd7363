"""Python that means something else in a compiled kernel than in Triton's interpreter.

In: the source of a kernel, before the interpreter runs it. Out: source whose operators mean what they mean
to the compiler. `and`, `or` and `not` combine blocks element by element, where Python would return one of
them; the variable of a `range` has a type and can be cast; `.value` of a constant argument is the constant;
`max` and `min` of blocks are those of their elements; a kernel may have a closure; and a `tl.static_assert`
that fails is what an autotuner takes for "does not compile".
"""

import ast
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import triton.language as tl

from pipeline.backends.triton.interpretation.sanitizer import SANITIZER
from pipeline.backends.triton.triton_internals import interpreter, static_assertion

_PREFIX = "_kernelmill_"


class InductionVariable(int):
    """The variable of a loop: a number that can be cast like a scalar of the kernel."""

    dtype = type = tl.int32

    def to(self, dtype: Any, *_arguments: Any, **_keywords: Any) -> Any:
        """As a scalar of a type."""
        return interpreter().interpreter_semantic.to_tensor(int(self), check_type=False).to(dtype)


def _with_number(name: str) -> Callable[[InductionVariable, Any], Any]:
    plain = getattr(int, name)

    def operation(self: InductionVariable, other: Any) -> Any:
        found = plain(self, other)
        return InductionVariable(found) if type(found) is int else found

    return operation


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "mod", "rmod"):
    setattr(InductionVariable, f"__{_name}__", _with_number(f"__{_name}__"))


def loop(values: Any) -> Iterator[Any] | Iterable[Any]:
    """What a loop of the kernel runs over."""
    return map(InductionVariable, values) if isinstance(values, range) else values


def conjunction(*operands: Callable[[], Any]) -> Any:
    """`and`: a constant that is false ends it, one that is true has no effect."""
    return _combined(operands, ending=False, combine=lambda one, other: one.logical_and(other))


def disjunction(*operands: Callable[[], Any]) -> Any:
    """`or`: a constant that is true ends it, one that is false has no effect."""
    return _combined(operands, ending=True, combine=lambda one, other: one.logical_or(other))


def _combined(operands: Iterable[Callable[[], Any]], *, ending: bool, combine: Callable[..., Any]) -> Any:
    tensors: list[Any] = []
    last: Any = None
    for operand in operands:
        last = operand()
        if isinstance(last, tl.tensor):
            tensors.append(last)
        elif bool(last) is ending:
            return last
    return functools.reduce(combine, tensors) if tensors else last


def negation(operand: Any) -> Any:
    """`not`."""
    return operand.__not__() if isinstance(operand, tl.tensor) else not operand


def value_of(constant: Any) -> Any:
    """`.value` of a constant argument, which the interpreter passes as it is."""
    return constant.value if hasattr(constant, "value") else constant


def extreme(function: Any, *operands: Any, **keywords: Any) -> Any:
    """`max` or `min`, where the kernel means Python's: of blocks element by element."""
    elementwise = {max: tl.maximum, min: tl.minimum}.get(function) if callable(function) else None
    if elementwise is None or keywords or not any(isinstance(each, tl.tensor) for each in operands):
        return function(*operands, **keywords)
    return functools.reduce(elementwise, operands)


_FUNCTIONS = {
    "loop": loop,
    "extreme": extreme,
    "and": conjunction,
    "or": disjunction,
    "not": negation,
    "value": value_of,
}


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(func=ast.Name(id=_PREFIX + name, ctx=ast.Load()), args=arguments, keywords=[])


def _later(expression: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=expression)


def transformer() -> ast.NodeTransformer:
    """The interpreter's own, with what it leaves as Python has it."""
    base: Any = interpreter().ASTTransformer

    class KernelSyntax(base):  # type: ignore[misc]
        """Rewrites the source of a kernel."""

        def visit_Assign(self, node: ast.Assign) -> Any:
            node.value = self.visit(node.value)
            return super().visit_Assign(node)

        def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
            self.generic_visit(node)
            name = "and" if isinstance(node.op, ast.And) else "or"
            return ast.copy_location(_call(name, [_later(each) for each in node.values]), node)

        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            if isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
                given = _call("extreme", [node.func, *node.args])
                given.keywords = node.keywords
                return ast.copy_location(given, node)
            return node

        def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
            self.generic_visit(node)
            if not isinstance(node.op, ast.Not):
                return node
            return ast.copy_location(_call("not", [node.operand]), node)

        def visit_For(self, node: ast.For) -> ast.AST:
            self.generic_visit(node)
            if isinstance(node.iter, ast.Call) and getattr(node.iter.func, "attr", "") != "static_range":
                node.iter = ast.copy_location(_call("loop", [node.iter]), node.iter)
            return node

        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            self.generic_visit(node)
            if node.attr != "value" or not isinstance(node.ctx, ast.Load):
                return node
            return ast.copy_location(_call("value", [node.value]), node)

    found: ast.NodeTransformer = KernelSyntax()
    return found


def install() -> None:
    """Let the interpreter rewrite kernels so; called once, by `interpreter.mend`."""
    parts = interpreter()
    parts.FunctionRewriter.ast_transformer = transformer()
    parts.FunctionRewriter._compile_and_exec = _with_closure(parts.FunctionRewriter._compile_and_exec)
    for name, function in _FUNCTIONS.items():
        setattr(parts, _PREFIX + name, function)  # the interpreter gives its own names to every kernel
    patch, run = parts._patch_lang_core, parts.GridExecutor.__call__

    def patched(language: Any, scope: Any) -> None:
        patch(language, scope)
        scope.set_attr(language, "static_assert", _static_assert)
        scope.set_attr(language, "multiple_of", functools.partial(_multiple_of, language.multiple_of))

    def called(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return run(self, *arguments, **keywords)
        except parts.InterpreterError as error:
            cause: BaseException | None = error
            while cause is not None:
                if isinstance(cause, static_assertion()):
                    raise cause from error
                cause = cause.__cause__
            raise

    parts._patch_lang_core = patched
    parts.GridExecutor.__call__ = called


def _with_closure(compile_and_run: Callable[..., Any]) -> Callable[..., Any]:
    """Functions that are made within another one keep what they have from it."""

    def rewritten(self: Any, tree: ast.Module) -> Any:
        names = self.fn.__code__.co_freevars
        if not names:
            return compile_and_run(self, tree)
        cells = dict(zip(names, self.fn.__closure__, strict=True))
        given = ast.arguments(
            posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        (function,) = tree.body
        assert isinstance(function, ast.FunctionDef)
        result = ast.Return(ast.Name(function.name, ast.Load()))
        outer = ast.FunctionDef(function.name, given, [function, result], [])
        tree.body = [ast.fix_missing_locations(ast.copy_location(outer, function))]
        made = compile_and_run(self, tree)(*(_content(cells[name]) for name in names))
        inner = types.FunctionType(
            made.__code__,
            made.__globals__,
            made.__name__,
            made.__defaults__,
            tuple(cells[name] for name in made.__code__.co_freevars),
        )
        inner.__kwdefaults__, inner.__annotations__ = made.__kwdefaults__, made.__annotations__
        return inner

    return rewritten


def _content(cell: Any) -> Any:
    """None while nothing is in it: a function that calls itself is not there yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _static_assert(condition: Any, message: Any = "") -> None:
    if not operator.truth(value_of(condition)):
        raise static_assertion()(None, None, str(value_of(message)))


def _multiple_of(promise: Callable[..., Any], values: Any, divisor: Any) -> Any:
    """The promise of `tl.multiple_of`, which the compiler believes: looked at for the first element."""
    number = value_of(divisor)
    if isinstance(values, tl.tensor) and isinstance(number, int) and number > 1:
        first = int(values.handle.data.reshape(-1)[0])
        if first % number:
            SANITIZER.misaligned(f"tl.multiple_of promises a multiple of {number}, and it is {first}")
    return promise(values, divisor)


def asserts(kernel: Any) -> bool:
    """Whether a kernel's own source holds a static assertion."""
    try:
        return "static_assert" in inspect.getsource(kernel)
    except (OSError, TypeError):
        return False
