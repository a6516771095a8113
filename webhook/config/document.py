"""Read the YAML of a configuration file as plain values with their positions.

The reader works on the parser's events. PyYAML's composer drops duplicate keys, and limits neither nesting nor aliases.
Scalars resolve as in YAML 1.1, which Kubernetes uses, except that a date stays text.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import yaml
from yaml import events
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from webhook.config.faults import MAX_SHOWN_CHARS, ConfigError, ConfigFault, Path, render_path, shown

MAX_CONFIG_BYTES = 1 << 20  # the limit of a ConfigMap
_MAX_VALUES = 100_000  # after aliases; a file of MAX_CONFIG_BYTES without repetition has fewer
MAX_CONFIG_LEVELS = 50  # the deepest field is on level 8

_TAG = "tag:yaml.org,2002:"
_RESOLVER = Resolver()
_CONSTRUCTOR = SafeConstructor()


class LineAndColumn(NamedTuple):
    """A position in the file. Lines and columns count from 1."""

    line: int
    column: int


class ConfigDocument(NamedTuple):
    """The parsed values of a configuration file, with their positions in the file.

    Attributes:
        value: The parsed YAML, of any shape.
        places: The position of each value by its path.
        keys: The position of each key by its path.
        written: The original text of unquoted values other than strings, by path. For example, ``1.10`` for
            ``rulesVersion: 1.10``, parsed as the number 1.1.
    """

    value: Any  # raw YAML: any shape
    places: Mapping[Path, LineAndColumn]
    keys: Mapping[Path, LineAndColumn]
    written: Mapping[Path, str]

    def fault(self, path: Path, message: str, *, key: bool = False) -> ConfigFault:
        """Return a fault at the position of a value, or of its key.

        An absent value has the position of its parent mapping.
        """
        place = self.keys.get(path) if key else None
        nearest = path
        while place is None:
            place = self.places.get(nearest)
            if not nearest:
                break
            nearest = nearest[:-1]
        line, column = place or LineAndColumn(0, 0)
        return ConfigFault(path=render_path(path), message=message, line=line, column=column)


class _UnusableError(Exception):
    def __init__(self, message: str, place: LineAndColumn) -> None:
        super().__init__(message)
        self.fault = ConfigFault(path="", message=message, line=place.line, column=place.column)


def read_config_document(text: str, *, file: str) -> ConfigDocument:
    """Read the only YAML document of a configuration file.

    Raises:
        ConfigError: The document has faults, such as duplicate keys. A fault can stop the parser, and is then the only
            one.
    """
    try:
        node = _only_document(text)
        reading = _TreeReader()
        value = reading.value(node, (), 0)
    except _UnusableError as error:
        raise ConfigError([error.fault], file=file) from None
    if reading.faults:
        raise ConfigError(reading.faults, file=file)
    return ConfigDocument(value, reading.places, reading.keys, reading.written)


def _only_document(text: str) -> yaml.Node:
    """Return the tree of the only document. Empty documents do not count."""
    only: yaml.Node | None = None
    stream = _events(text)
    for event in stream:
        if not isinstance(event, events.DocumentStartEvent):
            continue
        node = _tree(next(stream), stream, {}, 0)
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null":
            continue
        if only is not None:
            message = "a second YAML document starts here; the file must hold one SpreadPolicy"
            raise _UnusableError(message, _place(node.start_mark))
        only = node
    if only is None:
        raise _UnusableError("the file is empty; it needs at least apiVersion and kind", LineAndColumn(1, 1))
    return only


def _events(text: str) -> Iterator[events.Event]:
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        problem = error.problem or "cannot be read"
        hint = "; YAML is indented with spaces, not tabs" if "token" in problem and "\t" in text else ""
        raise _UnusableError(f"not YAML: {problem}{hint}", _place(error.problem_mark)) from None
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="replace")
        place = LineAndColumn(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise _UnusableError("not YAML: a control character", place) from None


class _Mark(Protocol):
    """A position reported by a YAML parser. Lines and columns count from 0."""

    line: int
    column: int


def _place(mark: _Mark | None) -> LineAndColumn:
    return LineAndColumn(mark.line + 1, mark.column + 1) if mark else LineAndColumn(1, 1)


def _tree(event: events.Event, stream: Iterator[events.Event], anchors: dict[str, yaml.Node], depth: int) -> yaml.Node:
    mark: Any = event.start_mark  # the two parsers have different types
    if depth > MAX_CONFIG_LEVELS:
        raise _UnusableError(f"nested deeper than {MAX_CONFIG_LEVELS} levels", _place(mark))
    if isinstance(event, events.AliasEvent):
        name = event.anchor or ""
        if name not in anchors:
            raise _UnusableError(f"the alias *{name[:MAX_SHOWN_CHARS]} has no anchor before it", _place(mark))
        return anchors[name]
    node: yaml.Node
    if isinstance(event, events.ScalarEvent):
        node = yaml.ScalarNode(_scalar_tag(event), event.value, mark)
    elif isinstance(event, events.SequenceStartEvent):
        items: list[yaml.Node] = []
        while not isinstance(item := next(stream), events.SequenceEndEvent):
            items.append(_tree(item, stream, anchors, depth + 1))
        node = yaml.SequenceNode(f"{_TAG}seq", items, mark)
    else:
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        while not isinstance(key := next(stream), events.MappingEndEvent):
            named = _tree(key, stream, anchors, depth + 1)
            pairs.append((named, _tree(next(stream), stream, anchors, depth + 1)))
        node = yaml.MappingNode(f"{_TAG}map", pairs, mark)
    anchor = getattr(event, "anchor", None)
    if anchor is not None:
        anchors[anchor] = node
    return node


def _scalar_tag(event: events.ScalarEvent) -> str:
    plain, quoted = event.implicit
    if plain:
        # types-PyYAML leaves this method without types.
        return str(_RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False)))  # type: ignore[no-untyped-call]  # it has no types
    return f"{_TAG}str" if quoted else str(event.tag)


class _TreeReader:
    def __init__(self) -> None:
        self.places: dict[Path, LineAndColumn] = {}
        self.keys: dict[Path, LineAndColumn] = {}
        self.written: dict[Path, str] = {}
        self.faults: list[ConfigFault] = []
        self._values = 0

    def value(self, node: yaml.Node, path: Path, depth: int) -> object:
        self._count(node, depth)
        self.places[path] = _place(node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        return self._mapping(node, path, depth)

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        kind, text = node.tag.removeprefix(_TAG), str(node.value)
        if kind in {"str", "timestamp", "value", "merge"}:
            return text
        self.written[path] = text
        try:
            match kind:
                case "null":
                    return None
                case "bool":
                    return bool(_CONSTRUCTOR.construct_yaml_bool(node))
                case "int":
                    return int(_CONSTRUCTOR.construct_yaml_int(node))
                case "float":
                    number = float(_CONSTRUCTOR.construct_yaml_float(node))
                    if math.isfinite(number):
                        return number
                    self._fault(node, path, f"must be a finite number, is {text[:MAX_SHOWN_CHARS]}")
                case _:
                    self._fault(node, path, f"unknown YAML tag {shown(node.tag)}")
        except (ValueError, KeyError, IndexError):
            self._fault(node, path, f"must be a valid !!{kind}, is {shown(text)}")
        return None

    def _mapping(self, node: yaml.Node, path: Path, depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        for name, (key, value) in self._pairs(node, path, depth).items():
            inner = (*path, name)
            self.keys[inner] = _place(key.start_mark)
            result[name] = self.value(value, inner, depth + 1)
        return result

    def _pairs(self, node: yaml.Node, path: Path, depth: int) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the keys and values of a YAML mapping, with ``<<`` merge keys resolved.

        A key of the mapping itself overrides a merged key. If several merged mappings have the same key, the first
        mapping wins.
        """
        self._count(node, depth)
        pairs: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        sources: list[yaml.Node] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._fault(key, path, "a key must be a plain name, not a mapping or a list")
            elif key.tag == f"{_TAG}merge":
                sources += value.value if isinstance(value, yaml.SequenceNode) else (value,)
            elif key.value in pairs:
                first = _place(pairs[key.value][0].start_mark).line
                self._fault(key, (*path, key.value), f"duplicate key; the first is on line {first}")
            else:
                pairs[key.value] = (key, value)
        for source in sources:
            if isinstance(source, yaml.MappingNode):
                pairs = self._pairs(source, path, depth + 1) | pairs
            else:
                self._fault(source, path, "<< can only merge mappings")
        return pairs

    def _count(self, node: yaml.Node, depth: int) -> None:
        if depth > MAX_CONFIG_LEVELS:
            raise _UnusableError(f"aliases nest deeper than {MAX_CONFIG_LEVELS} levels", _place(node.start_mark))
        self._values += 1
        if self._values > _MAX_VALUES:
            message = f"more than {_MAX_VALUES} values with all aliases expanded"
            raise _UnusableError(message, _place(node.start_mark))

    def _fault(self, node: yaml.Node, path: Path, message: str) -> None:
        line, column = _place(node.start_mark)
        self.faults.append(ConfigFault(path=render_path(path), message=message, line=line, column=column))
