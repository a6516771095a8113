"""Whatever the bytes are, reading them gives objects and faults, never an exception."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import read_manifests
from webhook.manifests.reading.positions import find, json_tree, yaml_tree

TEXT = "a¦: ¦- ¦\n¦  ¦{¦}¦[¦]¦,¦\"¦'¦&a ¦*a¦<<: ¦!!int ¦|\n¦---\n¦...¦# ¦\t¦\r\n¦\xff¦\0¦? ¦1¦.5¦~¦yes¦\xef\xbb\xbf¦"
TEXT += (
    'apiVersion: v1\n¦kind: Pod\n¦items:\n¦{"apiVersion":"v1","kind":"List","items":[¦{"apiVersion":"v1","kind":"Pod"}'
)
PIECES = st.sampled_from([piece.encode("latin-1") for piece in TEXT.split("¦")])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


class TestReading:
    """Reading is total: each document gives its objects or one fault, and every place is in the file."""

    @given(st.lists(PIECES, max_size=30).map(b"".join) | st.binary(max_size=60))
    def test_any_bytes(self, data):
        lines = data.count(b"\n") + data.count(b"\r") + 3
        for found in read_manifests("f", data):
            if isinstance(found, InputFault):
                assert 0 <= found.line <= lines
                assert "\n" not in str(found)
            else:
                place = found.locate("spec.a[0].b")
                assert 1 <= place.line <= lines
                assert 0 <= place.caret <= len(place.text)

    @pytest.mark.slow
    @given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
    def test_json_is_read_as_it_is(self, fields):
        value = {**fields, "apiVersion": "v1", "kind": "Thing"}
        value.pop("items", None)
        [found] = read_manifests("f", json.dumps(value).encode())
        assert isinstance(found.value, bytes) or list(found.value) == list(value)


class TestPlaces:
    """A field of JSON is found at the same place, whether the text is taken for JSON or for YAML."""

    @given(
        st.dictionaries(
            st.text("abc", min_size=1, max_size=3), st.integers(0, 9) | st.text("xyz", max_size=3), max_size=4
        )
    )
    def test_json_and_yaml_agree(self, value):
        text = json.dumps({"spec": value})
        for key in value:
            assert find(json_tree(text), f"spec.{key}").start == find(yaml_tree(text.encode()), f"spec.{key}").start
