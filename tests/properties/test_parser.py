"""Our parser and gunicorn's read the same from any bytes, however they are cut."""

import itertools

import pytest
from gunicorn.asgi.parser import ParseError, PythonProtocol
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.server.connections.connection import Parser

names = st.sampled_from(
    [b"Host", b"Content-Length", b"Content-Type", b"Transfer-Encoding", b"Connection", b"X-Y", b"x_y"]
)
values = st.sampled_from(
    [b"3", b"chunked", b"close", b"a b", b"", b"\t tab \t", b"\xff\xfe", b"a\rb", b"a\nb", b"a\0b", b"\x7f"]
)
between = st.sampled_from([b": ", b":", b" : ", b":\t", b"", b":: "])
ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\n "])
fields = st.tuples(names | st.binary(max_size=6), between, values | st.binary(max_size=8), ends).map(b"".join)
heads = st.lists(fields, max_size=6).map(b"".join)
requests = st.tuples(
    st.sampled_from([b"POST /validate HTTP/1.1\r\n", b"GET / HTTP/1.0\r\n"]),
    heads,
    st.sampled_from([b"\r\n", b"\n", b""]),
    st.sampled_from([b"abc", b"", b"3\r\nabc\r\n0\r\n\r\n", b"abcPOST / HTTP/1.1\r\n\r\n"]),
).map(b"".join)


def read(parser_class, sent, cuts):
    """Everything that the parser came to: its fields, its callbacks, or its refusal."""
    said = []
    parser = parser_class(
        on_headers_complete=lambda: said.append("headers") or False,
        on_body=lambda chunk: said.append(bytes(chunk)),
        on_message_complete=lambda: said.append("complete"),
        limit_request_fields=5,
        limit_request_field_size=64,
    )
    edges = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    try:
        for begin, end in itertools.pairwise(edges):
            parser.feed(sent[begin:end])
    except ParseError as error:
        said.append((type(error), str(error)))
    facts = (parser.method, parser.path, parser.headers, parser.content_length, parser.is_chunked)
    return said, facts, parser.should_keep_alive, parser.is_complete, parser.remaining()


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(sent=requests, cuts=st.lists(st.integers(1, 80), max_size=3))
def test_any_request_reads_the_same(sent, cuts):
    assert read(Parser, sent, cuts) == read(PythonProtocol, sent, cuts)


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"X: " + b"a" * 61 + b"\r\n", id="a field at its limit"),
        pytest.param(b"X: " + b"a" * 62 + b"\r\n", id="a field beyond it"),
        pytest.param(b"X: a\r\n" * 5, id="as many as there may be"),
        pytest.param(b"X: a\r\n" * 6, id="one more"),
        pytest.param(b"", id="none"),
    ],
)
def test_limits_are_the_same(head):
    sent = b"GET / HTTP/1.1\r\n" + head + b"\r\n"
    assert read(Parser, sent, ()) == read(PythonProtocol, sent, ())
