"""Find the API objects in documents, with the positions of their fields.

The items of a ``List``, or of any object with ``items``, are objects of their own, as in kubectl. An unreadable part
becomes an `InputFault`. The rest of the file is still read.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from pathlib import PurePath

import msgspec
from msgspec import Raw, Struct, structs

from webhook.core.api.types import LabelSelector, SpreadConstraint, TypeMeta
from webhook.core.decoders import decoder_of
from webhook.core.text import one_line
from webhook.core.workloads.custom_kinds import CONSTRAINTS, VALUES_KIND, may_hold_constraints
from webhook.manifests.reading.documents import InputDocument, InputFault, split
from webhook.manifests.reading.go_yaml import MAX_DUPLICATES, MAX_YAML_LEVELS, Json, read_document
from webhook.manifests.reading.lists import Head, inherit, missing_type, split_list
from webhook.manifests.reading.other_files import VALUES, claims, passed_constraints, why_passed_over
from webhook.manifests.reading.positions import find, is_too_deep, json_duplicates, json_tree, yaml_tree
from webhook.manifests.reading.unreadable import unreadable
from webhook.manifests.reading.yaml_scalars import UnreadableDocumentError

# An API server takes requests of 3 MiB. A second reads about 5 MiB of YAML, or 300 of JSON.
MAX_YAML_BYTES = 8 * 2**20

_EMPTY_LIST = "an empty list: nothing to check"
# No rule reads the schema of a CustomResourceDefinition. `check` of 181 MiB of them takes 2.1 s of processor time,
# and 10 s with parsing.
_CRD = ("apiextensions.k8s.io/", "CustomResourceDefinition")
_TYPES = re.compile(rb"""^["']?(apiVersion|kind)["']?[ \t]*:[ \t]*["']?([^\s"'#]+)""", re.MULTILINE)
_NAME_OF = re.compile(rb"""^metadata:[ \t]*\r?\n(?:[ \t].*\n)*?[ \t]+name:[ \t]*["']?([^\s"']+)""", re.MULTILINE)
# Larger documents without any of these words are not parsed: they hold no object.
_TYPE_WORDS = (b"apiVersion", b"kind", b"items", CONSTRAINTS.encode())
_MAX_UNSNIFFED_BYTES = 32 * 1024

# These fields decide which parts of an object are checked.
_DECISIVE = frozenset(
    (
        *("apiVersion", "kind", "metadata", "spec", "template", "jobTemplate", "labels", "selector", "items"),
        *(CONSTRAINTS, *SpreadConstraint.__struct_encode_fields__, *LabelSelector.__struct_encode_fields__),
    )
)

# The kind given to a list of JSON 6902 operations. It has no apiVersion, and one field with the operations.
JSON_PATCH = "JSONPatch"
OPERATIONS = "operations"
_VERBS = ("add", "remove", "replace", "move", "copy", "test")

# The kind of a snapshot file's first line.
_SNAPSHOT_HEADER = "Snapshot"


class FieldPosition(Struct, frozen=True, kw_only=True):
    """The position of a field in a file, for error messages.

    Attributes:
        line: The line number, from 1.
        column: The column number, from 1.
        text: The text of this line, without characters outside the YAML or JSON document.
        caret: The index of the field's first character in ``text``.
        width: The number of characters to underline, at least 1.
    """

    line: int
    column: int
    text: str
    caret: int
    width: int


class Manifest(Struct, frozen=True, kw_only=True):
    """One API object as a client would send it.

    Attributes:
        value: A JSON value, or JSON text of an object.
        uid: Empty unless it is from a cluster.
        locate: Finds a field by its API path in the object.
        prefix: The path from the document to the object.
    """

    document: InputDocument
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    value: bytes | Mapping[str, Json]
    prefix: str
    locate: Callable[[str], FieldPosition]

    @property
    def file(self) -> str:
        """Its file."""
        return self.document.file

    @property
    def source(self) -> str:
        """The path of the document's Helm template. Empty if unknown."""
        return self.document.source

    @property
    def type_meta(self) -> TypeMeta:
        """Its API version and kind."""
        return TypeMeta(api_version=self.api_version, kind=self.kind)

    @property
    def json_text(self) -> bytes:
        """The object as JSON text."""
        return self.value if isinstance(self.value, bytes) else json.dumps(self.value).encode()

    def fault(self, path: str, message: str, *, fatal: bool = True) -> InputFault:
        """A fault at the field with this API path."""
        place = self.locate(path)
        return InputFault(file=self.file, message=message, line=place.line, column=place.column, fatal=fatal)

    def without_text(self) -> "Manifest":
        """Return a copy of the manifest without its content, for reports.

        A run with many findings must not keep all of its input in memory.
        """
        return structs.replace(self, value=b"", locate=_nowhere, document=structs.replace(self.document, text=b""))

    @property
    def title(self) -> str:
        """The object's name in messages: ``Deployment shop/web``."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return one_line(f"{self.kind} {name or '(unnamed)'}")


def _nowhere(path: str) -> FieldPosition:
    raise LookupError(path)


_HEAD = decoder_of(Head)
_ITEMS = decoder_of(list[Raw])


def read_manifests(  # noqa: PLR0913 one parameter a choice
    file: str,
    data: bytes,
    *,
    duplicates: bool = True,
    having: Sequence[bytes] = (),
    values: bool = False,
    is_patch: bool = False,
) -> Iterator[Manifest | InputFault]:
    """Yield every object and every fault of a file, in the order of the file.

    Args:
        file: The file's name in messages.
        data: The file's bytes.
        duplicates: Report duplicate keys in JSON too. This takes longer than reading the JSON.
        having: Skip documents without any of these words.
        values: Also yield the content of a Helm values file, as an object of kind `VALUES_KIND`.
        is_patch: Read objects without apiVersion, as kustomize reads its patches.
    """
    for piece in split(file, data):
        if isinstance(piece, InputFault):
            yield piece
        elif having and not any(word in piece.text for word in having):
            continue
        elif piece.json:
            yield from _json_objects(piece, duplicates=duplicates, values=values)
        else:
            yield from _yaml_objects(structs.replace(piece, is_patch=is_patch) if is_patch else piece, values=values)


def _yaml_objects(document: InputDocument, *, values: bool) -> Iterator[Manifest | InputFault]:
    if (crd := _definition(document)) is not None:
        yield crd
        return
    if len(document.text) > _MAX_UNSNIFFED_BYTES and not any(word in document.text for word in _TYPE_WORDS):
        yield document.fault(missing_type(None, None), document.start, foreign=True)
        return
    if len(document.text) > MAX_YAML_BYTES:
        size, limit = len(document.text) / 2**20, MAX_YAML_BYTES // 2**20
        yield document.fault(f"the YAML document has {size:.1f} MiB; the limit is {limit} MiB, and JSON has no limit")
        return
    try:
        reading = read_document(document.text)
    except UnreadableDocumentError as error:
        yield unreadable(document, error)
        return
    if not document.is_patch and (note := why_passed_over(document.file, reading.value)):
        yield document.fault(note, fatal=False)
        yield from _values(document, reading.value, is_asked=values and VALUES in note)
        return
    value = reading.value
    foreign = not isinstance(value, dict) or bool(missing_type(value.get("apiVersion"), value.get("kind")))
    unseparated = {"apiVersion", "kind"} <= {duplicate.key for duplicate in reading.duplicates}
    for duplicate in reading.duplicates:
        hint = "; is '---' missing above?" if unseparated and duplicate.key == "apiVersion" else ""
        yield _twice(document, duplicate.key, duplicate.index, hint, foreign=foreign)
    if len(reading.duplicates) == MAX_DUPLICATES:
        yield document.fault("further duplicate keys are not listed")
    if reading.trailing is not None:
        message = "kubectl ignores everything from here to the next '---': the document has ended"
        yield document.fault(message, reading.trailing, foreign=foreign)
    if reading.value is not None:
        yield from _objects(document, reading.value, "", _locator(document))


def _values(document: InputDocument, value: Json, *, is_asked: bool) -> Iterator[Manifest]:
    """Yield a Helm values file as a manifest if it ``is_asked`` for and its text may contain constraints."""
    if is_asked and isinstance(value, dict) and may_hold_constraints(document.text):
        head = Head("", VALUES_KIND, {"name": PurePath(document.file).name})
        value = {**value, "apiVersion": "", "kind": VALUES_KIND}
        yield _manifest(document, head, value, _locator(document))


def _definition(document: InputDocument) -> Manifest | None:
    """Read only type and name of a CustomResourceDefinition. None for any other document."""
    if _CRD[1].encode() not in document.text:
        return None
    stated = [(key.decode(), value.decode("utf-8", "replace")) for key, value in _TYPES.findall(document.text)]
    types = dict(stated)
    if len(stated) > len(_CRD) or types.get("kind") != _CRD[1] or not types.get("apiVersion", "").startswith(_CRD[0]):
        return None
    name = _NAME_OF.search(document.text)
    value = {**types, "metadata": {"name": name[1].decode("utf-8", "replace")} if name else {}}
    head = Head(types["apiVersion"], types["kind"], value["metadata"])
    return _manifest(document, head, value, _locator(document))


def _twice(document: InputDocument, key: str, index: int, hint: str = "", *, foreign: bool = False) -> InputFault:
    """Return the fault for a duplicate key. It is fatal if the key can hold an object or constraints."""
    message = f"duplicate key {key!r:.80}: kubectl takes the last one, kustomize and Flux refuse it{hint}"
    return document.fault(message, index, fatal=key in _DECISIVE, foreign=foreign)


def _objects(
    document: InputDocument, value: Json, prefix: str, locate: Callable[[str], FieldPosition], outer: Head | None = None
) -> Iterator[Manifest | InputFault]:
    """Yield the object in ``value``, or each object of a List. ``outer`` is the List containing the value, if any."""

    def fault(message: str, *, foreign: bool = False, fatal: bool = True) -> InputFault:
        if not prefix:
            return document.fault(message, document.start, foreign=foreign, fatal=fatal)
        place = locate(prefix.removesuffix("."))
        return InputFault(file=document.file, message=message, line=place.line, column=place.column, fatal=fatal)

    if not isinstance(value, dict):
        what = (
            _broken_operation(document, value)
            or f"not a Kubernetes object: {_kind_of_json(value)} instead of a mapping"
        )
        yield _json_patch(document, value, locate) or fault(f"{what}{passed_constraints(value)}", foreign=True)
        return
    head = Head(value.get("apiVersion"), value.get("kind"), value.get("metadata"))
    items = value.get("items")
    if items is not None:
        if not (isinstance(items, list) and _is_list(head, items)):
            what = f"not a Kubernetes list: items is {_kind_of_json(items)}"
            yield fault(missing_type(head.api_version, head.kind) or what, foreign=not _is_list(head, items))
            return
        if not items:
            yield fault(_EMPTY_LIST, fatal=False)
        for number, item in enumerate(items):
            yield from _objects(document, item, f"{prefix}items[{number}].", locate, head)
        return
    stated = inherit(head, outer) if outer else head
    if missing := missing_type("v1" if document.is_patch else stated.api_version, stated.kind):
        yield fault(f"{missing}{passed_constraints(value)}", foreign=not claims(value))
        return
    if stated is not head:
        value = {**value, "apiVersion": stated.api_version, "kind": stated.kind}
    yield _manifest(document, stated, value, locate, prefix)


def _json_objects(
    document: InputDocument, *, duplicates: bool, outer: Head | None = None, values: bool = False
) -> Iterator[Manifest | InputFault]:
    head = _json_head(document)
    if isinstance(head, InputFault):
        yield head
        return
    if isinstance(head.items, Raw) and (items := bytes(head.items)) != b"null":
        yield from _json_items(document, head, items, duplicates=duplicates)
        return
    # Before anything walks it: the parsers behind are recursive.
    if is_too_deep(document.text):
        yield document.fault(f"nested more than {MAX_YAML_LEVELS} levels deep")
        return
    stated = inherit(head, outer) if outer else head
    if stated.kind == _SNAPSHOT_HEADER and not stated.api_version:
        return
    if missing := missing_type(stated.api_version, stated.kind):
        value = msgspec.json.decode(document.text)
        note = "" if outer else why_passed_over(document.file, value)
        yield document.fault(
            note or f"{missing}{passed_constraints(value)}", fatal=not note, foreign=outer is None and not claims(value)
        )
        yield from _values(document, value, is_asked=values and VALUES in note)
        return
    try:
        twice = json_duplicates(document.text.decode()) if duplicates else []
        typed: bytes | Mapping[str, Json] = document.text
        if stated is not head:
            typed = {**msgspec.json.decode(document.text), "apiVersion": stated.api_version, "kind": stated.kind}
    except (ValueError, RecursionError) as error:
        yield document.fault(f"not JSON: {str(error).partition(' - at ')[0].lower()}")
        return
    for key, index in twice[:MAX_DUPLICATES]:
        yield _twice(document, key, index)
    yield _manifest(document, stated, typed, _locator(document))


def _json_head(document: InputDocument) -> Head | InputFault:
    text = document.text
    try:
        head = _HEAD.decode(text)
        # msgspec skips unneeded fields and misses broken UTF-8 in them.
        if not text.isascii():
            text.decode()
    except UnicodeDecodeError as error:
        return document.fault("not valid UTF-8", len(text[: error.start].decode()))
    except (msgspec.DecodeError, RecursionError) as error:
        if not text.lstrip().startswith(b"{"):
            return document.fault("not a Kubernetes object: not a JSON object")
        return document.fault(f"not JSON: {str(error).partition(' - at ')[0].lower()}")
    return head


def _json_items(
    document: InputDocument, head: Head, raw: bytes, *, duplicates: bool
) -> Iterator[Manifest | InputFault]:
    """Yield the objects of a JSON list as documents of their own."""
    try:
        items = _ITEMS.decode(raw)
    except msgspec.ValidationError:
        yield document.fault("not a Kubernetes list: items is not a list", foreign=not _is_list(head, ()))
        return
    if not _is_list(head, [msgspec.json.decode(item) for item in items[:1]]):
        yield document.fault(missing_type(head.api_version, head.kind), foreign=True)
        return
    if not items:
        yield document.fault(_EMPTY_LIST, fatal=False)
    start = max(document.text.find(raw), 0)
    for item in split_list(document.text, items, start=start, line=document.line, column=document.column):
        yield from _json_objects(structs.replace(document, **item._asdict()), duplicates=duplicates, outer=head)


def _is_list(head: Head, items: Json) -> bool:
    """Whether an object with ``items`` is a list of objects: the list or its first item has a type."""
    first = items[0] if isinstance(items, list) and items else None
    return bool(head.kind or head.api_version) or (isinstance(first, dict) and bool(first.get("kind")))


def _json_patch(document: InputDocument, value: Json, locate: Callable[[str], FieldPosition]) -> Manifest | None:
    """The manifest of a list of JSON 6902 operations. None for any other value."""
    if not isinstance(value, list) or not value or not all(map(_is_operation, value)):
        return None
    patch = {OPERATIONS: value}
    return _manifest(document, Head("", JSON_PATCH), patch, lambda path: locate(path.removeprefix(OPERATIONS)))


def _is_operation(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("path"), str) and value.get("op") in _VERBS


def _broken_operation(document: InputDocument, value: Json) -> str:
    """The fault of the first broken operation of a JSON 6902 patch. Empty for any other value.

    Source: RFC 6902 section 4; kustomize api/filters/patchjson6902.
    """
    if not isinstance(value, list) or not (document.is_patch or any(map(_is_operation, value))):
        return ""
    number, broken = next((pair for pair in enumerate(value) if not _is_operation(pair[1])), (0, None))
    if not isinstance(broken, dict):
        return ""
    op = broken.get("op")
    wrong = "no path" if op in _VERBS else f"op {op!r:.80}" if op else "no op"
    return f"not a JSON 6902 patch: operation [{number}] has {wrong}, so kustomize refuses it"


def _kind_of_json(value: Json) -> str:
    return {dict: "a mapping", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}.get(
        type(value), "a number"
    )


def _manifest(
    document: InputDocument,
    head: Head,
    value: bytes | Mapping[str, Json],
    locate: Callable[[str], FieldPosition],
    prefix: str = "",
) -> Manifest:
    metadata = head.metadata if isinstance(head.metadata, dict) else {}
    namespace, name = metadata.get("namespace"), metadata.get("name") or metadata.get("generateName")
    uid = metadata.get("uid")
    return Manifest(
        document=document,
        api_version=head.api_version if isinstance(head.api_version, str) else "",
        kind=head.kind,
        namespace=namespace if isinstance(namespace, str) else "",
        name=name if isinstance(name, str) else "",
        uid=uid if isinstance(uid, str) else "",
        value=value,
        prefix=prefix,
        locate=(lambda path: locate(prefix + path)) if prefix else locate,
    )


def _locator(document: InputDocument) -> Callable[[str], FieldPosition]:
    """A function to find fields of a document. The first call builds the tree and splits the lines."""
    tree = cache(lambda: json_tree(document.text.decode()) if document.json else yaml_tree(document.text))
    lines = cache(lambda: document.text.decode("utf-8", "replace").removeprefix("\ufeff").split("\n"))
    starts = cache(lambda: [0, *accumulate(len(line) + 1 for line in lines())])

    def locate(path: str) -> FieldPosition:
        span = find(tree(), path)
        number = bisect_right(starts(), span.start) - 1
        text, caret = lines()[number], span.start - starts()[number]
        return FieldPosition(
            line=document.line + number,
            column=caret + 1 + (0 if number else document.column),
            text=text.rstrip("\r"),
            caret=caret,
            width=max(min(span.end - span.start, len(text.rstrip("\r")) - caret), 1),
        )

    return locate
