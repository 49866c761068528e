"""Tests that the parser returns the same requests for any split of the bytes, and rejects ambiguous requests."""

import gc
import itertools
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.golang.encoding import MAX_BODY
from fairlead.server.http import http1
from fairlead.server.http.messages import Response

STREAM = (
    b"GET /api/v1/pods?limit=5&labelSelector=a%3Db,c&watch HTTP/1.1\r\nHost: h\r\nUser-Agent:  me/1 \r\n\r\n"
    b"POST /api/v1/namespaces HTTP/1.1\r\nhost: h\r\nContent-Length: 4\r\n\r\n{ \n}"
    b"PUT http://h/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;a=b\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: t\r\n\r\n"
    b"\r\nDELETE /y HTTP/1.1\r\nConnection: close\r\n\r\n"
)
EXPECTED = [
    ("GET", "/api/v1/pods", {"limit": ["5"], "labelSelector": ["a=b,c"], "watch": [""]}, b"", True),
    ("POST", "/api/v1/namespaces", {}, b"{ \n}", True),
    ("PUT", "/x", {}, b"abc0123456789", True),
    ("DELETE", "/y", {}, b"", False),
]


def parse(pieces):
    parser, requests = http1.RequestParser(), []
    for piece in pieces:
        parser.feed(piece)
        while (request := parser.next()) is not None:
            requests.append(request)
    assert not parser.has_more
    return requests


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=8))
def test_requests_are_parsed_however_the_bytes_are_split(cuts):
    ends = [0, *sorted(cuts), len(STREAM)]
    requests = parse([STREAM[a:b] for a, b in itertools.pairwise(ends)])
    assert [(r.method, r.path, r.query, r.body, r.keep_alive) for r in requests] == EXPECTED
    assert requests[0].headers == {"host": "h", "user-agent": "me/1"}


@pytest.mark.parametrize(
    ("request_head", "status"),
    {
        "no request at all": (b"hello", 400),
        "another protocol": (b"PRI * HTTP/2.0\r\n\r\nSM", 400),
        "no path": (b"GET pods HTTP/1.1", 400),
        "a bad escape in the path": (b"GET /a%zz HTTP/1.1", 400),
        "a space before the colon": (b"GET / HTTP/1.1\r\nContent-Length : 3", 400),
        "a folded header": (b"GET / HTTP/1.1\r\nA: b\r\n c", 400),
        "a bare line feed": (b"GET / HTTP/1.1\r\nA: b\nContent-Length: 3", 400),
        "a null": (b"GET / HTTP/1.1\r\nA: \0", 400),
        "two lengths": (b"GET / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4", 400),
        "a length with a sign": (b"GET / HTTP/1.1\r\nContent-Length: +3", 400),
        "a length in other digits": ("GET / HTTP/1.1\r\nContent-Length: ٣".encode(), 400),
        "a length and chunks": (b"GET / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked", 400),
        "another coding": (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked", 501),
        "a body too large": (b"POST / HTTP/1.1\r\nContent-Length: %d" % (MAX_BODY + 1), 413),
    }.values(),
)
def test_an_ambiguous_or_malformed_head_is_rejected(request_head, status):
    parser = http1.RequestParser()
    parser.feed(request_head + b"\r\n\r\n")
    with pytest.raises(http1.RejectedRequest) as rejection:
        parser.next()
    assert rejection.value.status == status


@pytest.mark.parametrize("chunk", [b"x\r\n", b"-1\r\n", b" 3\r\nabc\r\n", b"3\r\nabcd\r\n", b"1" * 17 + b"\r\n"])
def test_a_malformed_chunk_is_rejected(chunk):
    parser = http1.RequestParser()
    parser.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
    with pytest.raises(http1.RejectedRequest) as rejection:
        parser.next()
    assert rejection.value.status == 400


def test_the_size_of_heads_bodies_and_trailers_is_bounded():
    endless = http1.RequestParser()
    endless.feed(b"GET / HTTP/1.1\r\nA: " + b"a" * http1.MAX_HEAD)
    with pytest.raises(http1.RejectedRequest) as rejection:
        endless.next()
    assert rejection.value.status == 431
    chunked = http1.RequestParser()
    chunked.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(MAX_BODY // 0x1000):
        chunked.feed(b"1000\r\n" + b"a" * 0x1000 + b"\r\n")
        assert chunked.next() is None
    chunked.feed(b"1\r\na")
    with pytest.raises(http1.RejectedRequest) as rejection:
        chunked.next()
    assert rejection.value.status == 413
    framed = http1.RequestParser()
    framed.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: ")
    with pytest.raises(http1.RejectedRequest) as rejection:  # noqa: PT012 (the last of many pieces raises)
        for _ in range(http1.MAX_HEAD // 0x10000 + 2):
            framed.feed(b"a" * 0x10000)
            framed.next()
    assert rejection.value.status == 431


def test_malformed_pairs_of_a_query_are_ignored():
    (request,) = parse([b"GET /?a=1&b=%zz&c;d=2&&e=+%2B&a=2 HTTP/1.1\r\n\r\n"])
    assert request.query == {"a": ["1", "2"], "e": [" +"]}


@pytest.mark.parametrize(
    ("protocol", "connection", "keep_alive"),
    [("1.1", "", True), ("1.1", "Close", False), ("1.0", "", False), ("1.0", "Keep-Alive", True)],
)
def test_the_client_decides_whether_the_connection_is_kept_alive(protocol, connection, keep_alive):
    (request,) = parse([f"GET / HTTP/{protocol}\r\nConnection: {connection}\r\n\r\n".encode()])
    assert request.keep_alive is keep_alive


def test_repeated_headers_keep_all_impersonated_groups_and_else_the_first():
    request_head = b"GET / HTTP/1.1\r\nImpersonate-Group: a\r\nAccept: x\r\nImpersonate-Group: b\r\nAccept: y\r\n\r\n"
    (request,) = parse([request_head])
    assert request.headers == {"impersonate-group": "a\nb", "accept": "x"}


def test_a_warning_with_a_line_break_is_not_sent():
    (request,) = parse([b"GET / HTTP/1.1\r\n\r\n"])
    response = Response(200, b"{}", warnings=["fine", "evil\r\nSet-Cookie: a=b"])
    response_bytes = http1.serialize(response, request, "now")
    assert b'Warning: 299 - "fine"\r\n' in response_bytes
    assert b"Cookie" not in response_bytes


def test_a_closed_parser_is_freed_without_the_garbage_collector():
    parser = http1.RequestParser()
    parser.feed(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
    assert parser.next() is not None
    reference = weakref.ref(parser)
    gc.disable()
    try:
        parser.close()
        del parser
        assert reference() is None
    finally:
        gc.enable()
