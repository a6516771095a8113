"""Decoders are made one at a time: with half of a type another thread would crash the process."""

import ast
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from webhook.core.decoders import converted, decoder_of

ROOT = Path(__file__).parents[2]
DOOR = ROOT / "webhook" / "core" / "decoders.py"

BEGUN, GO_ON = threading.Event(), threading.Event()


def slowly() -> type[int]:
    """What an annotation below is, once somebody lets it go on."""
    BEGUN.set()
    assert GO_ON.wait(30)
    return int


class Inner(Struct):
    number: "slowly()"


class Outer(Struct):
    name: str
    inner: Inner


class Labelled(Struct):
    labels: Mapping[str, str] = {}


def test_a_type_has_one_decoder():
    assert decoder_of(Labelled) is decoder_of(Labelled)
    assert decoder_of(Labelled).decode(b'{"labels":{"app":"web"}}') == Labelled({"app": "web"})


def test_plain_values_are_converted_as_json_is_decoded():
    assert converted({"labels": {"app": "web"}}, Labelled) == Labelled({"app": "web"})
    with pytest.raises(msgspec.ValidationError, match=r"^Expected `str`, got `int` - at `\$\.labels\[\.\.\.\]`$"):
        converted({"labels": {"app": 1}}, Labelled)


def test_who_asks_while_a_type_is_half_read_waits():
    read = []

    def ask():
        read.append(decoder_of(Outer).decode(b'{"name":"a","inner":{"number":2}}'))

    first, second = threading.Thread(target=ask), threading.Thread(target=ask)
    first.start()
    assert BEGUN.wait(30)
    second.start()
    second.join(0.2)
    assert (first.is_alive(), second.is_alive(), read) == (True, True, [])
    GO_ON.set()
    first.join(30)
    second.join(30)
    assert [(each.name, each.inner.number) for each in read] == [("a", 2)] * 2


# Every kind's first list at once, in a process whose threads take turns more often than usual. Without a lock 8 of 30
# such processes crashed.
AT_ONCE = """
import sys, threading
from webhook.core.index import readers
sys.setswitchinterval(3e-5)
kinds = [make for _, make in readers._KINDS.values()]
begin, done = threading.Barrier(len(kinds)), []
def read(make):
    begin.wait()
    done.append(make().page(b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}').version)
threads = [threading.Thread(target=read, args=(make,)) for make in kinds]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert done == ["1"] * len(kinds), done
"""


def test_first_lists_of_all_kinds_at_once_crash_nothing():
    for _ in range(6):
        ended = subprocess.run([sys.executable, "-c", AT_ONCE], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 our own program
        assert (ended.returncode, ended.stderr) == (0, "")


def makes_one(call: ast.Call) -> bool:
    """Whether msgspec is asked to read into a type."""
    asked = ast.unparse(call.func)
    return asked.endswith(("json.Decoder", "msgspec.convert")) or (
        asked.endswith("json.decode") and bool(call.keywords or call.args[1:])
    )


def test_nobody_else_makes_a_decoder():
    elsewhere = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "webhook").rglob("*.py"))
        if path != DOOR
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and makes_one(node)
    ]
    assert elsewhere == []


@pytest.mark.parametrize(
    ("call", "makes"),
    [
        ("msgspec.json.Decoder(Pod)", True),
        ("msgspec.convert(value, Pod)", True),
        ("msgspec.json.decode(raw, type=Pod)", True),
        ("msgspec.json.decode(raw)", False),
        ("decoder_of(Pod)", False),
    ],
)
def test_the_rule_sees_it(call, makes):
    assert makes_one(ast.parse(call, mode="eval").body) is makes


def test_nobody_takes_the_names_out_of_msgspec():
    """`from msgspec import convert` would walk round the rule."""
    taken = {
        alias.name
        for path in (ROOT / "webhook").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgspec")
        for alias in node.names
    }
    assert not taken & {"convert", "json", "Decoder", "decode"}
    assert "Struct" in taken
