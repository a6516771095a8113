"""Read recorded answers of Kubernetes (vectors), evaluate the same cases, and report the differences.

A file is JSON Lines, each ``{"scenario": ..., "expected": ...}``. A line ``{"kubernetesVersion": "v1.34.4"}`` sets
the release of the following lines. Before the first such line, the release is the newest. Only fields of ``expected``
are compared. If ``expected`` has all main fields of its kind, a missing ``decodeError`` means no error.
"""

import gzip
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from webhook.conformance.admit_cases import decide_admit
from webhook.conformance.validate_cases import decide_args, decide_refused, decide_validate, members, text_of
from webhook.conformance.verdict_cases import decide_verdict
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.decoders import decoder_of

# By kind: a function from the members of a scenario's JSON and the release to the answer, in the form of
# ``expected``. Other kinds are not supported yet.
Evaluator = Callable[[Mapping[str, bytes], KubernetesVersion], Mapping[str, object]]
_EVALUATORS: Mapping[str, Evaluator] = {
    "validate": decide_validate,
    "refused": decide_refused,
    "args": decide_args,
    "admit": decide_admit,
    "verdict": decide_verdict,
}

_GZIP = b"\x1f\x8b"
_MAX_FIRST = 10  # differences that are kept of each kind: a wrong rule would differ in thousands
# A record with one of these fields holds the whole answer of its kind.
_WHOLE = {
    "validate": {"errors", "warnings", "topologySpreadConstraints"},
    "args": {"errors", "args"},
    "verdict": {"preFilter", "nodes", "spreadPreFilter", "spread", "scores"},
}
_ABSENT_IS_NONE = {
    "validate": ("decodeError", "strictWarnings"),
    "args": ("decodeError",),
    "verdict": ("message", "spreadState", "error", "nodeScores", "best"),
}


class VectorError(Exception):
    """A vector file cannot be read. The message has the file and, if known, the line."""


class Difference(Struct, frozen=True):
    """A difference from a recorded answer.

    Attributes:
        where: The path in ``expected``.
        expected: The recorded value, None if absent.
        got: Our value, None if absent.
    """

    id: str
    where: str
    expected: object
    got: object


class Comparison(Struct, frozen=True, kw_only=True):
    """The result for a kind of test case and a Kubernetes release in a file.

    Attributes:
        kind: The kind of test case: for example ``validate`` or ``admit``.
        cases: The number of test cases.
        agree: The number of test cases with equal recorded and own results.
        release: The minor release.
        supported: False for an unsupported kind. Then nothing was compared, and ``agree`` is 0.
        first: The first differences, at most one for each test case.
    """

    file: str
    kind: str
    cases: int
    agree: int
    first: tuple[Difference, ...]
    supported: bool = True
    release: str = str(RECORDED)

    @property
    def rate(self) -> float:
        """The share of test cases in agreement, from 0 to 1."""
        return self.agree / self.cases


def _kind(scenario: Mapping[str, bytes]) -> str:
    if "object" in scenario:
        return "validate"
    if "workload" in scenario:
        return "refused"
    if "create" in scenario:
        return "admit"
    return "verdict" if scenario.keys() & {"pod", "nodes", "plugin"} else "args"


class _Count:
    """Collects the counts for a vector kind and Kubernetes release while a file is read."""

    def __init__(self) -> None:
        self.cases = 0
        self.agree = 0
        self.first: list[Difference] = []

    def add(self, id_: str, difference: tuple[str, object, object] | None, *, supported: bool) -> None:
        """Count one case."""
        self.cases += 1
        if difference is None:
            self.agree += supported
        elif len(self.first) < _MAX_FIRST:
            self.first.append(Difference(id_, *difference))


def compare_file(
    path: Path, evaluators: Mapping[str, Evaluator] = _EVALUATORS, as_version: KubernetesVersion | None = None
) -> tuple[Comparison, ...]:
    """Compare evenspread's result with the recorded result for every test case of a file.

    Returns a comparison for each kind and release, in order of first appearance. ``as_version`` overrides the release
    in the file for evenspread's results.

    Raises:
        VectorError: The file cannot be read.
    """
    counts: dict[tuple[str, str], _Count] = {}
    version = as_version or RECORDED
    for number, line in enumerate(_lines(path), 1):
        try:
            record = members(line)
            if "kubernetesVersion" in record:
                version = as_version or parse_version(text_of(record["kubernetesVersion"]))
                continue
            scenario = members(record["scenario"])
            expected = msgspec.json.decode(record["expected"])
            kind, id_ = _kind(scenario), decoder_of(str).decode(scenario.get("id", b'""'))
            evaluate = evaluators.get(kind)
            got = evaluate(scenario, version) if evaluate else None
        except (ValueError, RecursionError) as error:  # msgspec's and json's are ValueErrors
            raise VectorError(f"{path}:{number}: no vector: {str(error)[:256]}") from None
        except KeyError as error:
            raise VectorError(f"{path}:{number}: no vector: it lacks {error}") from None
        difference = None if got is None else _first_difference(kind, expected, got)
        counts.setdefault((kind, str(version)), _Count()).add(id_, difference, supported=got is not None)
    if not counts:
        raise VectorError(f"{path}: it contains no vectors")
    return tuple(
        Comparison(
            file=str(path),
            kind=kind,
            release=release,
            cases=count.cases,
            agree=count.agree,
            first=tuple(count.first),
            supported=kind in evaluators,
        )
        for (kind, release), count in counts.items()
    )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == _GZIP
        with gzip.open(path, "rb") if zipped else path.open("rb") as lines:
            yield from (line for line in lines if line.strip())
    except (OSError, EOFError) as error:
        raise VectorError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _first_difference(kind: str, expected: object, got: Mapping[str, object]) -> tuple[str, object, object] | None:
    if isinstance(expected, dict) and expected.keys() >= _WHOLE.get(kind, set()):
        for name in _ABSENT_IS_NONE.get(kind, ()):
            expected.setdefault(name, None)
    if isinstance(expected, dict) and kind == "verdict" and "candidates" in expected:
        # These are the nodes that may be feasible. Our feasible nodes must be among them.
        candidates, feasible = expected.pop("candidates"), got.get("feasible")
        if not isinstance(feasible, list) or not {*feasible} <= {*(candidates or ())}:
            return "candidates", candidates, feasible
    return next(differences(expected, got), None)


def differences(expected: object, got: object, where: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield the differences between an expected JSON value and evenspread's.

    Returns:
        The path, the expected value and evenspread's value of each difference. Fields missing from ``expected`` are not
            compared. A field missing from ``got`` counts as null. Lists of different lengths are one difference.
    """
    if isinstance(expected, dict) and isinstance(got, Mapping):
        for name, value in expected.items():
            yield from differences(value, got.get(name), f"{where}.{name}" if where else name)
    elif isinstance(expected, list) and isinstance(got, list | tuple) and len(expected) == len(got):
        for index, (value, actual) in enumerate(zip(expected, got, strict=True)):
            yield from differences(value, actual, f"{where}[{index}]")
    elif expected != got or isinstance(expected, bool) is not isinstance(got, bool):
        yield where, expected, got
