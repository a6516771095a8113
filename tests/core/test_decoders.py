"""Decoders are made one at a time: with half of a type another thread would crash the process."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from webhook.core.decoders import converted, decoder_of

ROOT = Path(__file__).parents[2]
DOOR = ROOT / "webhook" / "core" / "decoders.py"


class Labelled(Struct):
    labels: Mapping[str, str] = {}


def test_a_type_has_one_decoder():
    assert decoder_of(Labelled) is decoder_of(Labelled)
    assert decoder_of(Labelled).decode(b'{"labels":{"app":"web"}}') == Labelled({"app": "web"})


def test_plain_values_are_converted_as_json_is_decoded():
    assert converted({"labels": {"app": "web"}}, Labelled) == Labelled({"app": "web"})
    with pytest.raises(msgspec.ValidationError, match=r"^Expected `str`, got `int` - at `\$\.labels\[\.\.\.\]`$"):
        converted({"labels": {"app": 1}}, Labelled)


# Two threads, of which the first still finds out what an annotation is; the second, which did not wait, crashed.
HALF_READ = """
import threading
from msgspec import Struct, inspect
from webhook.core.decoders import converted, decoder_of

begun, go_on, read = threading.Event(), threading.Event(), []

def slowly():
    begun.set()
    assert go_on.wait(30)
    return int

class Inner(Struct):
    number: "slowly()"

class Outer(Struct):
    name: str
    inner: Inner

def first():
    decoder_of(Outer)

def second():
    read.append(SECOND)

threads = [threading.Thread(target=each, daemon=True) for each in (first, second)]
threads[0].start()
assert begun.wait(30)
threads[1].start()
threads[1].join(0.2)
assert threads[1].is_alive() and not read, read
go_on.set()
for each in threads:
    each.join(30)
print(*read)
"""


def ended(program: str) -> tuple[int, str, str]:
    """How a process of its own ends: its code, and what it prints; a crash takes nobody else with it."""
    run = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize(
    ("second", "printed"),
    [
        pytest.param(
            """decoder_of(Outer).decode(b'{"name":"a","inner":{"number":2}}')""",
            "Outer(name='a', inner=Inner(number=2))\n",
            id="decoded",
        ),
        pytest.param(
            """converted({"name": "a", "inner": {"number": 2}}, Outer)""",
            "Outer(name='a', inner=Inner(number=2))\n",
            id="converted",
        ),
        pytest.param("inspect.type_info(decoder_of(Outer).type).cls.__name__", "Outer\n", id="described"),
    ],
)
def test_who_asks_while_a_type_is_half_read_waits(second, printed):
    assert ended(HALF_READ.replace("SECOND", second)) == (0, printed, "")


# Every kind's first list at once, in a process whose threads take turns more often than usual. Without a lock 8 of 30
# such processes crashed.
AT_ONCE = """
import sys, threading
from webhook.core.api.types import TypeMeta
from webhook.core.index import readers
sys.setswitchinterval(3e-5)
kinds = [TypeMeta(api_version=version, kind=kind) for version, kind in readers._KINDS]
begin, done = threading.Barrier(len(kinds), timeout=30), []
def read(kind):
    begin.wait()
    done.append(readers.reader(kind).page(b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}').version)
threads = [threading.Thread(target=read, args=(kind,), daemon=True) for kind in kinds]
for each in threads:
    each.start()
for each in threads:
    each.join(30)
assert done == ["1"] * len(kinds), done
"""


@pytest.mark.slow
def test_first_lists_of_all_kinds_at_once_crash_nothing():
    for _ in range(6):
        assert ended(AT_ONCE) == (0, "", "")


# What of msgspec makes no decoder; `structs` has functions on values and names of fields.
MAKES_NONE = {
    *("DecodeError", "MsgspecError", "Raw", "Struct", "ValidationError", "to_builtins", "json.encode", "json.format"),
    *("json.Encoder", "structs.fields", "structs.replace"),
}
TAKEN = {
    "msgspec": {"UNSET", "Meta", "Raw", "Struct", "UnsetType", "field", "structs", "to_builtins"},
    "msgspec.structs": {"asdict", "astuple", "fields", "replace"},
}


def asked_directly(tree: ast.AST) -> Iterator[str]:
    """Where msgspec could be shown a type that has no decoder: what is not known to be harmless."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    fine = set(map(id, chain.from_iterable(map(harmless, ast.walk(tree)))))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                taken = {f"{each.name} as {each.asname}" for each in names if each.name.startswith("msgspec")}
                yield from taken - {"msgspec as None"}
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == "msgspec":
                if module != "msgspec.inspect":
                    yield from {each.name for each in names} - TAKEN.get(module, set())
            case ast.Attribute() if id(node) not in inner and id(node) not in fine:
                name = re.fullmatch(r"msgspec\.([\w.]+)", ast.unparse(node))
                if name is not None and name[1] not in MAKES_NONE:
                    yield name[0]
            case ast.Name(id="type_info") if id(node) not in fine:
                yield "type_info"
            case _:
                pass


def harmless(node: ast.AST) -> Iterator[ast.AST]:
    """What is asked of msgspec here so that no decoder is made."""
    match node:
        case ast.Subscript(value=value) if ast.unparse(value) == "msgspec.json.Decoder":
            yield value  # an annotation
        case ast.Call(func=func, args=[_], keywords=[]) if ast.unparse(func) == "msgspec.json.decode":
            yield func  # as plain values
        case ast.Call(func=func, args=[ast.Attribute(value=ast.Call(func=ast.Name(id="decoder_of")), attr="type")]):
            yield func
        case _:
            pass


@pytest.mark.slow
def test_nobody_else_shows_msgspec_a_type():
    found = {
        str(path.relative_to(ROOT)): [*asked_directly(ast.parse(path.read_text()))]
        for path in sorted((ROOT / "webhook").rglob("*.py"))
    }
    assert sorted(found.pop(str(DOOR.relative_to(ROOT)))) == ["msgspec.convert", "msgspec.json.Decoder"]
    assert {file: asked for file, asked in found.items() if asked} == {}


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("msgspec.json.Decoder(Pod)", ["msgspec.json.Decoder"]),
        ("msgspec.json.decode(raw, type=Pod)", ["msgspec.json.decode"]),
        ("partial(msgspec.json.decode, type=Pod)", ["msgspec.json.decode"]),
        ("msgspec.convert(value, Pod)", ["msgspec.convert"]),
        ("msgspec.msgpack.decode(raw)", ["msgspec.msgpack.decode"]),
        ("msgspec.json.schema(Pod)", ["msgspec.json.schema"]),
        ("import msgspec as m", ["msgspec as m"]),
        ("import msgspec.json", ["msgspec.json as None"]),
        ("from msgspec import convert", ["convert"]),
        ("from msgspec.json import decode", ["decode"]),
        ("type_info(Pod)", ["type_info"]),
        ("type_info(decoder_of(Pod).type)", []),
        ("def read(decoder: msgspec.json.Decoder[Pod]): msgspec.json.decode(raw)", []),
        ("from msgspec import Struct, structs", []),
        ("decoder_of(Pod)", []),
    ],
)
def test_the_rule_sees_it(code, asked):
    assert [*asked_directly(ast.parse(code))] == asked
