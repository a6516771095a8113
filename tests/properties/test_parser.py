"""A plain request is read as gunicorn's parser reads it, from any bytes."""

import pytest
from gunicorn.asgi.parser import ParseError, PythonProtocol
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.server.http.plain_request import plain_request

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


def read(sent):
    """What gunicorn's parser reads of the first request; None if it refuses it, or waits for more."""
    body = []
    parser = PythonProtocol(on_body=body.append, limit_request_line=4094)
    try:
        parser.feed(sent)
    except ParseError:
        return None
    if not parser.is_complete:
        return None
    assert (parser.method, parser.http_version, parser.should_keep_alive) == (b"POST", (1, 1), True)
    assert not parser.is_chunked
    return parser.path, parser.headers, b"".join(body), parser.remaining()


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(sent=requests)
def test_any_request_reads_the_same(sent):
    plain = plain_request(sent)
    if plain is not None:
        assert plain == read(sent)


HEAD = b"POST /validate HTTP/1.1\r\nContent-Length: 3\r\n"


@pytest.mark.parametrize(
    ("sent", "plain"),
    [
        pytest.param(HEAD + b"\r\nabc", True, id="whole"),
        pytest.param(HEAD + b"X: \t a b\t \r\n\r\nabcPOST", True, id="blanks, and more behind"),
        pytest.param(HEAD + b"\r\nab", False, id="a body that still arrives"),
        pytest.param(HEAD, False, id="a head that still arrives"),
        pytest.param(HEAD + b"Content-Length: 3\r\n\r\nabc", False, id="a field twice"),
        pytest.param(HEAD + b"X: " + b"a" * 8180 + b"\r\n\r\nabc", False, id="a field beyond its limit"),
        pytest.param(HEAD + b"".join(b"X-%d:\r\n" % n for n in range(99)) + b"\r\nabc", True, id="100 fields"),
        pytest.param(HEAD + b"".join(b"X-%d:\r\n" % n for n in range(100)) + b"\r\nabc", False, id="101 fields"),
        pytest.param(HEAD.replace(b"validate", b"v" * 4071) + b"\r\nabc", True, id="a line at its limit"),
        pytest.param(HEAD.replace(b"validate", b"v" * 4080) + b"\r\nabc", False, id="a line beyond it"),
        pytest.param(HEAD.replace(b"3", b"+3") + b"\r\nabc", False, id="a length with a sign"),
        pytest.param(HEAD.replace(b"3", b"9" * 5000) + b"\r\nabc", False, id="a length that is no number for Python"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", False, id="both lengths"),
        pytest.param(HEAD + b"X : a\r\n\r\nabc", False, id="a space before the colon"),
        pytest.param(HEAD + b"X: a\r\n b\r\n\r\nabc", False, id="a folded field"),
        pytest.param(HEAD.replace(b"\r\n", b"\n") + b"\nabc", False, id="LF only"),
        pytest.param(HEAD.replace(b"/", b"*"), False, id="no path"),
    ],
)
def test_what_is_plain(sent, plain):
    found = plain_request(sent)
    assert (found is not None) is plain
    assert found is None or found == read(sent)
