"""Inputs that are kept: one JSON text a line, a character for each byte."""

import json
import random
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[\w.]+|\s+|.', re.DOTALL)
_ODD = (
    b"",
    b"null",
    b"0",
    b"-1",
    b"1e999",
    b"9223372036854775808",
    b'""',
    b"[]",
    b"{}",
    b"true",
    b"\xff",
    b"\n",
    b": ",
)
_LONGEST = 8192


def kept(target: str) -> list[bytes]:
    file = FOLDER / f"{target}.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line).encode("latin-1") for line in lines]


def keep(target: str, inputs: list[bytes]) -> None:
    """In order of length, so that what is added shows in few lines."""
    lines = [json.dumps(each.decode("latin-1")) for each in sorted(set(inputs), key=lambda each: (len(each), each))]
    (FOLDER / f"{target}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def mutated(inputs: list[bytes], rng: random.Random) -> bytes:
    """One of the inputs with a few of its tokens gone, doubled, exchanged, or of another input."""
    tokens = _TOKENS.findall(rng.choice(inputs))
    other = _TOKENS.findall(rng.choice(inputs)) or [b""]
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randrange(len(tokens) + 1) for _ in range(2))
        change = rng.randrange(6)
        if change == 0:
            tokens[at : at + rng.randint(1, 3)] = []
        elif change == 1:
            tokens[at:at] = tokens[at:to]
        elif change == 2:
            tokens[at : at + 1] = [rng.choice(_ODD)]
        elif change == 3:
            tokens[at : at + 1] = [rng.choice(other)]
        elif change == 4:
            first = rng.randrange(len(other))
            tokens[at:to] = other[first : first + rng.randint(1, 20)]
        elif at < len(tokens) and tokens[at]:
            spoilt = bytearray(tokens[at])
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
            tokens[at] = bytes(spoilt)
    return b"".join(tokens)[:_LONGEST]
