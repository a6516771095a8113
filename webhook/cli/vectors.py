"""Recorded verdicts of Kubernetes: read them, decide the same cases, and say where the answers differ.

A file is JSON Lines, each ``{"scenario": ..., "expected": ...}``. Only the fields that stand in ``expected`` are
compared; a record that names the whole answer also says by a missing ``decodeError`` that there is none.
"""

import gzip
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from webhook.cli.deciding import decide_args, decide_validate

# By kind: a scenario's JSON -> the answer, in the shape of ``expected``. A kind that is not here is not supported yet.
EVALUATORS: Mapping[str, Callable[[bytes], Mapping[str, object]]] = {"validate": decide_validate, "args": decide_args}

_GZIP = b"\x1f\x8b"
_MAX_FIRST = 10
# A record that has one of these names the whole answer of its kind.
_WHOLE = {"validate": {"errors", "warnings", "topologySpreadConstraints"}, "args": {"errors", "args"}}
_ABSENT_IS_NONE = {"validate": ("decodeError", "strictWarnings"), "args": ("decodeError",)}


class VectorError(Exception):
    """A file that cannot be read as vectors. Shape: the text has the file and, where known, the line."""


class Difference(Struct, frozen=True):
    """Shape: ``where`` is the path in ``expected``; ``expected`` and ``got`` are None where nothing is."""

    id: str
    where: str
    expected: object
    got: object


class Tally(Struct, frozen=True, kw_only=True):
    """How the cases of one kind in one file came out.

    Shape: ``supported`` is False for a kind that cannot be decided yet: nothing of it was compared, ``agree`` is 0.
    ``first`` are the first differences, one a case.
    """

    file: str
    kind: str
    cases: int
    agree: int
    first: tuple[Difference, ...]
    supported: bool = True

    @property
    def rate(self) -> float:
        """Share of the cases that agree, 0 to 1."""
        return self.agree / self.cases


class _Line(Struct, frozen=True):
    scenario: Raw
    expected: Raw


class _Scenario(Struct, frozen=True):
    """What tells the kind of a scenario."""

    id: str = ""
    object: Raw = Raw()
    pod: Raw = Raw()
    nodes: Raw = Raw()
    plugin: str = ""

    @property
    def kind(self) -> str:
        if bytes(self.object):
            return "validate"
        return "verdict" if bytes(self.pod) or bytes(self.nodes) or self.plugin else "args"


_LINE = msgspec.json.Decoder(_Line)
_SCENARIO = msgspec.json.Decoder(_Scenario)


class _Count:
    """The tally of one kind while the file is read."""

    def __init__(self) -> None:
        self.cases = 0
        self.agree = 0
        self.first: list[Difference] = []


def compare_file(
    path: Path, evaluators: Mapping[str, Callable[[bytes], Mapping[str, object]]] = EVALUATORS
) -> tuple[Tally, ...]:
    """Decide every case of a file; one tally a kind, in the order of first appearance.

    Errors: VectorError.
    """
    counts: dict[str, _Count] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            record = _LINE.decode(line)
            scenario = _SCENARIO.decode(record.scenario)
            expected = msgspec.json.decode(record.expected)
            evaluate = evaluators.get(scenario.kind)
            got = evaluate(bytes(record.scenario)) if evaluate else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise VectorError(f"{path}:{number}: no vector: {str(error)[:256]}") from None
        count = counts.setdefault(scenario.kind, _Count())
        count.cases += 1
        if got is None:
            continue
        difference = _first_difference(scenario, expected, got)
        if difference is None:
            count.agree += 1
        elif len(count.first) < _MAX_FIRST:
            count.first.append(difference)
    if not counts:
        raise VectorError(f"{path}: no vectors in it")
    return tuple(
        Tally(
            file=str(path),
            kind=kind,
            cases=count.cases,
            agree=count.agree,
            first=tuple(count.first),
            supported=kind in evaluators,
        )
        for kind, count in counts.items()
    )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == _GZIP
        with gzip.open(path, "rb") if zipped else path.open("rb") as lines:
            yield from (line for line in lines if line.strip())
    except (OSError, EOFError) as error:
        raise VectorError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _first_difference(scenario: _Scenario, expected: object, got: Mapping[str, object]) -> Difference | None:
    if isinstance(expected, dict) and expected.keys() >= _WHOLE.get(scenario.kind, set()):
        for name in _ABSENT_IS_NONE.get(scenario.kind, ()):
            expected.setdefault(name, None)
    for where, wanted, found in differences(expected, got):
        return Difference(scenario.id, where, wanted, found)
    return None


def differences(expected: object, got: object, where: str = "") -> Iterator[tuple[str, object, object]]:
    """Where an answer differs from what is expected of it: path, expected, got.

    Shape: a field that ``expected`` lacks is not compared; lists must be equally long; a field that ``got`` lacks is
    null.
    """
    if isinstance(expected, dict) and isinstance(got, Mapping):
        for name, value in expected.items():
            yield from differences(value, got.get(name), f"{where}.{name}" if where else name)
    elif isinstance(expected, list) and isinstance(got, list | tuple) and len(expected) == len(got):
        for index, (value, found) in enumerate(zip(expected, got, strict=True)):
            yield from differences(value, found, f"{where}[{index}]")
    elif expected != got or isinstance(expected, bool) is not isinstance(got, bool):
        yield where, expected, got
