"""Decode JSON like Kubernetes, with its errors and warnings about unknown fields.

Differences from other decoders:

    names           case-sensitive
    null            keeps a scalar, and empties a pointer, list or map. In a list, null becomes an empty entry
    repeated field  decoded again into the same value, so that objects and lists merge
    wrong type      decoding continues and reports the first error. A type with its own UnmarshalJSON (time, quantity)
                    ends it

Source: sigs.k8s.io/json internal/golang/encoding/json decode.go, kubernetes_patch.go; the types are in go_types.txt.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.go_text import quote, time_fault
from webhook.core.api.quantity import FORMAT_WRONG, parse_quantity
from webhook.core.api.version import RECORDED, KubernetesVersion

# Upstream's limit of strict warnings (kubernetes_patch.go saveStrictError).
_MAX_STRICT = 100
_INTEGERS = {"int32": 2**31, "int64": 2**63}  # the first number above the range; its negative is the lowest
ERROR_CHARACTERS = 256  # of a JSON parser's error in messages
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_INT64_CHARACTERS = 20  # of the longest 64-bit number, with its sign
_SURROGATE = re.compile("[\ud800-\udfff]")
_OPAQUE = frozenset({"v1.Time", "resource.Quantity", "intstr.IntOrString", "v1.FieldsV1"})
_SIMPLE_QUANTITY = re.compile(r"[0-9]{1,15}(?:m|k|[KMGT]i?)?", re.ASCII)
_MISSING = object()
_INTERPRETING = "couldn't get version/kind; json parse error"
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


class _Number(str):
    """A number as text. The target's type decides whether the number fits."""

    __slots__ = ()


class Members(list[tuple[str, object]]):
    """The members of a JSON object in order, with repeated names."""


class GoJsonError(Exception):
    """Go's error about a JSON value.

    Attributes:
        path: The field with the value, with list indices. Empty for an error about the whole document.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self.path = path


class _GoType(Struct, frozen=True):
    """A Go type, as a target for JSON decoding.

    ``fields`` maps each JSON name to the path of Go field names and the field's type. The path has the embedded
    structs, then the field.
    """

    name: str
    kind: str
    release: int
    elem: str = ""
    fields: Mapping[str, tuple[tuple[str, ...], str]] = {}
    short: str = ""


_INT32 = _GoType("int32", "int32", 0)


@cache
def _table() -> tuple[dict[str, list[str]], int, int]:
    """Read go_types.txt: the entries of each type, the newest and the oldest minor release."""
    text = resources.files("webhook.core.apiserver").joinpath("go_types.txt").read_text(encoding="utf-8")
    (_, newest, _, oldest), *lines = (
        line.replace(",", "").split() for line in text.replace("\n ", " ").splitlines() if line[0] != "#"
    )
    return {name: entries for name, *entries in lines}, int(newest), int(oldest)


def declared_entries(name: str, release: int) -> list[str]:
    """Return a type's declaration in a minor release: ``=`` and another type, or fields in brackets.

    Empty for an unknown type.
    """
    entries = (entry.partition("@")[::2] for entry in _table()[0].get(name, ()))
    spans = ((text, releases.partition("-")[::2]) for text, releases in entries)
    return [text for text, (since, until) in spans if int(since or 0) <= release <= int(until or release)]


def go_type(text: str, version: KubernetesVersion) -> _GoType:
    """Resolve a Go type expression for a release."""
    _, newest, oldest = _table()
    return _resolve(text, min(max(version.minor, oldest), newest))


@cache
def _resolve(text: str, release: int) -> _GoType:
    if text.startswith("*"):
        return _GoType(text[1:], "pointer", release, text[1:])
    if text.startswith("[]"):
        return _GoType(text, "list", release, text[2:])
    if text.startswith("map["):
        return _GoType(text, "map", release, text.partition("]")[2])
    match declared_entries(text, release):
        case ["=", under]:
            target = _resolve(under, release)
            return _GoType(text, target.kind, release, target.elem)
        case ["{", *entries, "}"]:
            fields = (entry.partition(":")[::2] for entry in entries)
            named = {path.rpartition("/")[2]: (tuple(path.split("/")), type_) for path, type_ in fields}
            return _GoType(text, "struct", release, fields=named, short=text.rpartition(".")[2])
    return _GoType(text, "opaque" if text in _OPAQUE else text, release)


def read(raw: bytes) -> object:
    """Parse a JSON document. The order of members and the text of numbers are kept.

    Raises:
        ValueError: The JSON is invalid or too deep.

    Source: json/decode.go ``Unmarshal``, ``unquoteBytes``.
    """
    # Go reads invalid UTF-8 and half of a surrogate pair as U+FFFD.
    text = raw.decode("utf-8", "surrogateescape")
    try:
        # Members keep repeated names, and numbers stay text. Their meaning depends on the Go type.
        node: object = json.loads(
            text, object_pairs_hook=Members, parse_int=_Number, parse_float=_Number, parse_constant=_refuse
        )
        if _SURROGATE.search(text) or "\\ud" in text or "\\uD" in text:
            node = _cleaned(node)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    return node


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def _cleaned(node: object) -> object:
    """Replace half surrogate pairs and invalid UTF-8 by U+FFFD. Source: json/decode.go ``unquoteBytes``."""
    if isinstance(node, Members):
        return Members((_SURROGATE.sub("\ufffd", name), _cleaned(value)) for name, value in node)
    if isinstance(node, list):
        return [_cleaned(value) for value in node]
    if isinstance(node, str) and not isinstance(node, _Number):
        return _SURROGATE.sub("\ufffd", node)
    return node


def is_plain(value: object, target: _GoType) -> bool:
    """Whether each field of parsed JSON is known, and is null or has the right type.

    `decode_go` would return such a value unchanged without a warning, but takes several times longer. The value comes
    from a JSON parser, so no name is repeated.
    """
    kind = target.kind
    if kind == "pointer":
        target = _resolve(target.elem, target.release)
        kind = target.kind
    if value is None:
        return True
    if kind == "struct":
        return isinstance(value, dict) and _plain_members(value, target)
    if kind == "list":
        elem = _resolve(target.elem, target.release)
        return isinstance(value, list) and all(is_plain(entry, elem) for entry in value)
    if kind == "map":
        elem = _resolve(target.elem, target.release)
        return isinstance(value, dict) and all(is_plain(entry, elem) for entry in value.values())
    return _plain_scalar(value, target)


def _plain_members(value: dict[str, object], target: _GoType) -> bool:
    fields, release = target.fields, target.release
    for name, member in value.items():
        field = fields.get(name)
        if field is None:
            return False
        if (field[1] != "string" or type(member) is not str) and not is_plain(member, _resolve(field[1], release)):
            return False
    return True


def _plain_scalar(value: object, target: _GoType) -> bool:
    bound = _INTEGERS.get(target.kind)
    if bound is not None:
        return type(value) is int and -bound <= value < bound
    if target.kind != "opaque":
        return type(value) is (bool if target.kind == "bool" else str)
    if target.name == "v1.Time":
        return isinstance(value, str) and time_fault(value) is None
    if target.name == "intstr.IntOrString":
        return type(value) is str or (type(value) is int and -(2**31) <= value < 2**31)
    # Numeric and unusual quantities are left to `decode_go`.
    return target.name == "v1.FieldsV1" or (isinstance(value, str) and _SIMPLE_QUANTITY.fullmatch(value) is not None)


def decode_go(
    node: object, expression: str, prefix: tuple[str, ...] = (), version: KubernetesVersion = RECORDED
) -> tuple[object, tuple[str, ...]]:
    """Decode the result of `read` into a Go type.

    Args:
        node: The result of `read`.
        expression: The Go type, as in ``v1.Pod``.
        prefix: The fields above the node, for the error's path and text.
        version: The release of the types.

    Returns:
        Builtin values keyed by JSON names, and the strict decoder's warnings.

    Raises:
        GoJsonError: The first error.

    Source: json/decode.go ``unmarshal``, ``saveError``.
    """
    walk = _Walk(prefix, embedded=gates.NAMES_EMBEDDED_FIELDS.holds(version))
    try:
        value = walk.value(node, go_type(expression, version), _MISSING)
    except _SelfDecodingError as error:
        raise GoJsonError(walk.path(), str(error)) from None
    if walk.fault is not None:
        raise walk.fault
    return {} if value is _MISSING else value, tuple(walk.strict)


def interpreted_type(node: object) -> dict[str, str]:
    """Read the apiVersion and kind of a document. An absent field is empty.

    Letter case is ignored, because upstream uses the standard library here.

    Raises:
        GoJsonError: The document is not an object, or a field is not a string.

    Source: runtime/serializer/json/meta.go ``Interpret``.
    """
    if not isinstance(node, Members):
        text = f"{_INTERPRETING}: json: cannot unmarshal {_kind_of(node)} into Go value of type {_TYPE_META}"
        raise GoJsonError("", text)
    stated = {"apiVersion": "", "kind": ""}
    for name, value in node:
        known = {"apiversion": "apiVersion", "kind": "kind"}.get(name.casefold())
        if known is None or value is None:
            continue
        if isinstance(value, str) and not isinstance(value, _Number):
            stated[known] = value
        else:
            field = f"Go struct field .{known} of type string"
            raise GoJsonError(known, f"{_INTERPRETING}: json: cannot unmarshal {_kind_of(value)} into {field}")
    return stated


class _SelfDecodingError(Exception):
    """The error of a type with its own UnmarshalJSON.

    Decoding stops at this error. Source: json/decode.go ``indirect``.
    """


class _Slice(list[object]):
    """A Go slice in a decoded object.

    Attributes:
        memory: The entries in Go's memory, including entries removed from the slice. If the JSON repeats the slice's
            field, Go decodes the new entries into these old entries.
    """

    memory: list[object]


class _Walk:
    """The state of a decoding: the current field, the first error and the warnings."""

    def __init__(self, prefix: tuple[str, ...], *, embedded: bool) -> None:
        self.embedded = embedded
        self.fault: GoJsonError | None = None
        self.strict: dict[str, None] = {}
        self.where = [part if part.startswith("[") else "." + part for part in prefix]
        self.fields = [part for part in prefix if not part.startswith("[")]
        self.struct = ""

    def path(self) -> str:
        return "".join(self.where).removeprefix(".")

    def text(self, value: str, go_type: str) -> str:
        """Source: json/decode.go ``UnmarshalTypeError``, ``addErrorContext``."""
        inside = self.struct or self.fields
        field = f"Go struct field {self.struct}.{'.'.join(self.fields)}" if inside else "Go value"
        return f"json: cannot unmarshal {value} into {field} of type {go_type}"

    def wrong(self, value: str, go_type: str) -> None:
        """Source: json/decode.go ``saveError``."""
        if self.fault is None:
            self.fault = GoJsonError(self.path(), self.text(value, go_type))

    def note(self, what: str, name: str) -> None:
        """Source: kubernetes_patch.go ``saveStrictError``."""
        if len(self.strict) < _MAX_STRICT:
            self.strict[f"{what} {quote(f'{self.path()}.{name}' if self.where else name)}"] = None

    def value(self, node: object, target: _GoType, current: object) -> object:
        """Decode a JSON node.

        ``current`` is the value from an earlier field of the same name. Source: json/decode.go ``value``.
        """
        kind = target.kind
        if kind == "pointer":
            return None if node is None else self.value(node, _resolve(target.elem, target.release), current)
        if kind == "string" and type(node) is str:
            return node
        if kind == "opaque":
            return self.opaque(node, target.name)
        if node is None:
            return None if kind in {"list", "map"} else current
        return self.container(node, target, current) if isinstance(node, list) else self.scalar(node, target, current)

    def container(self, node: list[object], target: _GoType, current: object) -> object:
        """Source: json/decode.go ``value``."""
        if isinstance(node, Members):
            members = current if isinstance(current, dict) else {}
            if target.kind == "struct":
                return self.members_of_struct(node, target, members)
            if target.kind == "map":
                return self.members_of_map(node, target, members)
        elif target.kind == "list":
            return self.entries(node, target, current if isinstance(current, _Slice) else None)
        self.wrong(_kind_of(node), target.name)
        return current

    def scalar(self, node: object, target: _GoType, current: object) -> object:
        """Source: json/decode.go ``literalStore``."""
        bound = _INTEGERS.get(target.kind)
        if isinstance(node, _Number):
            if bound is None:
                self.wrong("number", target.name)
                return current
            if not _INTEGER.fullmatch(node) or len(node) > _INT64_CHARACTERS or not -bound <= int(node) < bound:
                self.wrong(f"number {node}", target.name)
                return current
            return int(node)
        if (isinstance(node, bool) and target.kind == "bool") or (isinstance(node, str) and target.kind == "string"):
            return node
        self.wrong(_kind_of(node), target.name)
        return current

    def entries(self, node: list[object], target: _GoType, current: _Slice | None) -> _Slice:
        """Source: json/decode.go ``array``."""
        # A repeated field decodes into the existing entries, also beyond the slice's end.
        memory = current.memory if current is not None and node else []
        elem = _resolve(target.elem, target.release)
        for index, entry in enumerate(node):
            self.where.append(f"[{index}]")
            if index == len(memory):
                memory.append(_zero(elem))
            memory[index] = self.value(entry, elem, memory[index])
            self.where.pop()
        out = _Slice(memory[: len(node)])
        out.memory = memory
        return out

    def members_of_map(self, node: Members, target: _GoType, current: dict[str, object]) -> dict[str, object]:
        """Source: json/decode.go ``object``."""
        elem, seen = _resolve(target.elem, target.release), set()
        for name, value in node:
            if name in seen:
                self.note("duplicate field", name)
            seen.add(name)
            self.where.append("." + name)
            current[name] = self.value(value, elem, _zero(elem))
            self.where.pop()
        return current

    def members_of_struct(self, node: Members, target: _GoType, current: dict[str, object]) -> dict[str, object]:
        """Source: json/decode.go ``object``."""
        seen, outer, fields, where, known = set(), self.struct, self.fields, self.where, target.fields
        depth = len(fields)
        for name, value in node:
            field = known.get(name)
            if field is None:
                self.note("unknown field", name)
                continue
            if name in seen:
                self.note("duplicate field", name)
            seen.add(name)
            self.struct = target.short
            fields += field[0] if self.embedded else field[0][-1:]
            where.append("." + name)
            decoded = self.value(value, _resolve(field[1], target.release), current.get(name, _MISSING))
            if decoded is not _MISSING:
                current[name] = decoded
            where.pop()
            del fields[depth:]
            self.struct = outer
        return current

    def opaque(self, node: object, name: str) -> object:
        if name == "resource.Quantity":
            return _quantity(node)
        if name == "v1.Time":
            return self.time(node)
        return self.integer_or_text(node) if name == "intstr.IntOrString" else _MISSING

    def time(self, node: object) -> object:
        """Source: meta/v1/time.go ``UnmarshalJSON``."""
        if node is None:
            return None
        if not isinstance(node, str) or isinstance(node, _Number):
            raise _SelfDecodingError(self.text(_kind_of(node), "string"))
        if fault := time_fault(node):
            raise _SelfDecodingError(fault)
        return node

    def integer_or_text(self, node: object) -> object:
        """Source: util/intstr/intstr.go ``UnmarshalJSON``."""
        if isinstance(node, str) and not isinstance(node, _Number):
            return node
        if node is None:
            return 0
        # An earlier error would hide this one, which ends the decoding.
        before, self.fault = self.fault, None
        number = self.value(node, _INT32, _MISSING)
        if self.fault is not None:
            raise _SelfDecodingError(str(self.fault))
        self.fault = before
        return number


def _quantity(node: object) -> str:
    """Source: api/resource/quantity.go ``UnmarshalJSON``."""
    if node is None:
        return "0"
    # Upstream reads the bytes between the quotes. An escaped character contains a backslash there.
    if not isinstance(node, str) or any(char < " " or char in '"\\' for char in node):
        raise _SelfDecodingError(FORMAT_WRONG)
    try:
        parse_quantity(node.strip())
    except ValueError as error:
        raise _SelfDecodingError(str(error)) from None
    return node.strip()


def _zero(target: _GoType) -> object:
    """The initial value of a new entry in a list or map."""
    if target.kind == "string":
        return ""
    if target.kind in _INTEGERS:
        return 0
    if target.kind == "struct":
        return {}
    return False if target.kind == "bool" else None


def _kind_of(node: object) -> str:
    if isinstance(node, Members):
        return "object"
    if isinstance(node, list):
        return "array"
    if isinstance(node, _Number):
        return "number"
    return "bool" if isinstance(node, bool) else "string"
