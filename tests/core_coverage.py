"""Measure the core's coverage, branches included, with a probe at the start of each block.

On Python 3.11, coverage.py doubles the time of the suite, and tests of the core's speed fail under it. A probe is a
store into a bytearray. `make test-all` sets COVER_CORE.
"""

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

PACKAGE = "webhook.core"
# Blocks without a test: 46, and a few more if random examples leave them out. Lower it when `make test-all` names
# fewer, and never raise it.
MOST_GAPS = 52
RAN = "_ran_"  # the name of a module's probes: a byte for each, 1 if it ran

ran: dict[str, bytearray] = {}  # by path


class _Blocks(ast.NodeTransformer):
    """Insert a probe at the start of each function and branch, and between the statements of a ``try``.

    Attributes:
        lines: Each probe's line and branch.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []

    def _probe(self, where: ast.AST, branch: str) -> ast.stmt:
        (store,) = ast.parse(f"{RAN}[{len(self.lines)}] = 1").body
        self.lines.append((where.lineno, branch))
        for node in ast.walk(store):
            ast.copy_location(node, where)
        return store

    def _block(self, body: Sequence[ast.stmt], branch: str, where: ast.AST | None = None) -> list[ast.stmt]:
        """The body behind a probe. A body that nothing reaches has none."""
        if body and _is_unreachable(body[0]):
            return [*body]
        return [self._probe(where or body[0], branch), *body]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        has_docstring = ast.get_docstring(node, clean=False) is not None
        documented, body = node.body[:has_docstring], node.body[has_docstring:]
        node.body = documented + (self._block(body, "") if body else [])
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return node
        node.body = self._block(node.body, "if")
        node.orelse = self._block(node.orelse, "else", None if node.orelse else node)
        return node

    def _visit_loop(self, node: ast.For | ast.While) -> ast.AST:
        self.generic_visit(node)
        is_endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
        node.body = self._block(node.body, "loop")
        node.orelse = node.orelse if is_endless else self._block(node.orelse, "end of the loop", node)
        return node

    visit_For = visit_While = _visit_loop  # noqa: N815 ast's names

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        between = ([self._probe(statement, ""), statement] for statement in node.body[1:])
        node.body = [node.body[0], *(each for pair in between for each in pair)]
        if node.orelse:
            node.orelse = self._block(node.orelse, "else")
        for handler in node.handlers:
            handler.body = self._block(handler.body, "except", handler)
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        self.generic_visit(node)
        for case in node.cases:
            case.body = self._block(case.body, "case")
        last = node.cases[-1]
        if last.guard is not None or not (isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None):
            node.cases.append(ast.match_case(pattern=ast.MatchAs(), body=[self._probe(node, "no case")]))
        return node


def _is_unreachable(statement: ast.stmt) -> bool:
    """Whether it is ``...`` of a Protocol, or a failed assertion."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) and statement.value.value is ...
    return isinstance(statement, ast.Raise) and ast.unparse(statement).startswith("raise AssertionError")


def instrument(source: bytes | str) -> tuple[ast.Module, list[tuple[int, str]]]:
    """Return the module with probes, and the line and branch of each probe."""
    blocks = _Blocks()
    return ast.fix_missing_locations(blocks.visit(ast.parse(source))), blocks.lines


class _Loader(SourceFileLoader):
    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError(path)  # so no stored bytecode is read or written

    def source_to_code(self, data: bytes, path: str, *, _optimize: int = -1) -> object:
        module, lines = instrument(data)
        ran[path] = bytearray(len(lines))
        return compile(module, path, "exec", dont_inherit=True, optimize=_optimize)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        setattr(module, RAN, ran[self.path])
        exec(code, module.__dict__)  # noqa: S102 as importlib does


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        if not f"{name}.".startswith(f"{PACKAGE}."):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def measure() -> None:
    """Put probes into all modules of the core. None of them may be imported yet."""
    assert not [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.")]
    sys.meta_path.insert(0, _Finder)


def merge(others: dict[str, bytes]) -> None:
    """Add the probes of another process."""
    for path, probes in others.items():
        own = ran.setdefault(path, bytearray(len(probes)))
        own[:] = map(max, own, probes)


def missing(folder: Path) -> Iterator[str]:
    """Yield the lines and branches that no test ran: ``webhook/core/text.py:12 else``."""
    for file in sorted(folder.rglob("*.py")):
        _, lines = instrument(file.read_bytes())
        probes = ran.get(str(file), bytes(len(lines)))
        for (line, branch), did_run in zip(lines, probes, strict=True):
            if not did_run:
                yield f"{os.path.relpath(file)}:{line} {branch}".rstrip()
