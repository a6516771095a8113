"""JSON nested more deeply than any decoder follows."""

import json

import msgspec
import pytest

from webhook.core.decoders import MOST_LEVELS, cut, read_nested


def nested(levels, inner="1"):
    return ('{"a":' * levels + inner + "}" * levels).encode()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param(nested(MOST_LEVELS), nested(MOST_LEVELS), id="as deep as is kept"),
        pytest.param(nested(MOST_LEVELS + 1), nested(MOST_LEVELS, "null"), id="one level more"),
        pytest.param(nested(MOST_LEVELS, "[[1],2]"), nested(MOST_LEVELS, "null"), id="a list"),
        pytest.param(nested(MOST_LEVELS, "1,[]"), nested(MOST_LEVELS, "1,null"), id="what is beside it stays"),
        pytest.param(b'["]}\\"[",{}]' + b"[" * 9, b'["]}\\"[",{}]' + b"[" * 9, id="brackets in a text"),
        pytest.param(nested(9000), nested(MOST_LEVELS, "null"), id="9,000 levels"),
        pytest.param(b"[" * 100_000, b"[" * MOST_LEVELS + b"null", id="no end"),
        pytest.param(b'{"a', b'{"a', id="half a text"),
    ],
)
def test_what_lies_below_is_left_out(text, kept):
    assert cut(text) == kept


def test_what_a_decoder_cannot_follow_is_read_without_it():
    beside = {"before": [1, {"x": "]"}], "after": "yes"}
    text = json.dumps(beside).encode().replace(b'"after"', b'"deep": ' + nested(5000) + b', "after"')

    found = read_nested(msgspec.json.decode, text)

    assert {name: found[name] for name in beside} == beside


def test_text_of_megabytes_is_cut_in_a_moment():
    text = b'{"a":"' + b"\\u003c" * 500_000 + b'","b":' + nested(5000) + b"}"
    assert len(cut(text)) < len(text) - 5000
