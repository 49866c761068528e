"""HTTP/1.1 parsing and serialization: from bytes to requests, from responses to bytes. No I/O happens here.

The parser is strict: it rejects a request that two parsers could read differently.
"""

import re
from collections import deque
from dataclasses import dataclass
from http import HTTPStatus
from typing import NoReturn

import httptools

from fairlead.server.golang import query_string
from fairlead.server.golang.encoding import MAX_BODY
from fairlead.server.http.messages import Response, format_warning

MAX_HEAD = 1 << 20  # bytes, as on a real server
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class RejectedRequest(Exception):
    """Raised for a request that is not valid HTTP, or too large. The rest of its connection cannot be parsed."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class ParsedRequest:
    """A complete HTTP request. `path` is still percent-encoded; `query` is decoded, without malformed pairs."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]  # see messages.Request
    keep_alive: bool  # whether the connection stays open after the response
    is_http10: bool  # HTTP/1.0, which does not have chunked encoding
    body: bytes


class RequestParser:
    """Parses a stream of bytes into requests with llhttp. The parser buffers a bounded number of bytes."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._unparsed = b""
        self._complete: deque[ParsedRequest] = deque()
        self._rejected_status = 0  # the status of the request that ended the stream
        self._is_in_head = True
        self._pending = 0  # bytes of an incomplete head or trailer that were parsed
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self.expects_continue = False  # the client waits for 100 Continue before it sends the body

    @property
    def unparsed(self) -> int:
        """The number of bytes that were received and are not parsed yet."""
        return len(self._unparsed)

    @property
    def has_more(self) -> bool:
        """Whether `next` may return a request or raise before more bytes arrive."""
        return bool(self._complete or self._unparsed or self._rejected_status)

    def close(self) -> None:
        """Stop parsing, and break the reference cycle between this object and the llhttp parser."""
        del self._parser

    def feed(self, data: bytes) -> None:
        """Add received bytes to the bytes that `next` will parse."""
        self._unparsed = self._unparsed + data if self._unparsed else data

    def next(self) -> ParsedRequest | None:
        """Return the next complete request, or None if more bytes are needed. Raises RejectedRequest."""
        if not self._complete and self._unparsed and not self._rejected_status:
            self._parse()
        if self._complete:
            return self._complete.popleft()
        if self._rejected_status:
            raise RejectedRequest(self._rejected_status)
        return None

    def _parse(self) -> None:
        data, self._unparsed = self._unparsed, b""
        self._pending += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request is served as if it had not asked for an upgrade. The bytes after it are in no known protocol.
            self._complete[-1].keep_alive = False
            self._rejected_status = 400
        except httptools.HttpParserError:
            self._rejected_status = self._rejected_status or 400
        if self._pending > MAX_HEAD:
            self._rejected_status = self._rejected_status or 431

    # The parser calls the following methods.

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body = b"", {}, bytearray()

    def on_url(self, target_bytes: bytes) -> None:
        self._target += target_bytes

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return  # trailers are ignored
        key, header_value = name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip(" \t")
        if key not in self._headers:
            self._headers[key] = header_value
        elif key.startswith("impersonate-"):
            self._headers[key] += f"\n{header_value}"
        elif key == "host" and self._headers[key] != header_value:
            self._reject(400)

    def on_headers_complete(self) -> None:
        self._is_in_head, self._pending = False, 0
        if self._headers.get("transfer-encoding", "chunked").lower() != "chunked":
            self._reject(501)
        if int(self._headers.get("content-length", 0)) > MAX_BODY:
            self._reject(413)
        self.expects_continue = self._headers.get("expect", "").lower() == "100-continue"

    def on_body(self, body_bytes: bytes) -> None:
        self._pending = 0
        self._body += body_bytes
        if len(self._body) > MAX_BODY:
            self._reject(413)

    def on_message_complete(self) -> None:
        self._is_in_head, self._pending, self.expects_continue = True, 0, False
        path, _, query = _to_origin_form(self._target.decode("utf-8", "replace")).partition("?")
        if _BAD_ESCAPE.search(path):
            self._reject(400)
        self._complete.append(
            ParsedRequest(
                self._parser.get_method().decode(),
                path,
                query_string.parse(query) if query else {},
                self._headers,
                self._parser.should_keep_alive(),
                self._parser.get_http_version() == "1.0",
                bytes(self._body),
            )
        )

    def _reject(self, status: int) -> NoReturn:
        """Store the status and raise, to stop the parser.

        The status is stored because llhttp reports any exception in a callback as a bad request.
        """
        self._rejected_status = status
        raise RejectedRequest(status)


def _to_origin_form(target: str) -> str:
    """Return path and query of a request target, without the scheme and host that a request to a proxy has."""
    if target.startswith("/"):
        return target
    scheme, separator, authority_and_path = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise RejectedRequest(400)
    return "/" + authority_and_path.partition("/")[2]


def status_text(status: int) -> str:
    """Return a status code with its phrase, such as `404 Not Found`."""
    return f"{status} {HTTPStatus(status).phrase}"


_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}


def serialize_head(
    status: int, headers: dict[str, str], warnings: list[str], date: str, *, length: int | None, close: bool
) -> bytes:
    """Return the status line and headers of a response. If `length` is None, the body is sent in chunks.

    With `close`, the connection ends after the response. Like a real server, omit warnings with control characters.
    """
    lines = [_STATUS_LINES[status], *[f"{name}: {value}\r\n" for name, value in headers.items()]]
    lines += [
        f"Warning: {format_warning(warning)}\r\n" for warning in warnings if not _CONTROL_CHARACTER.search(warning)
    ]
    lines.append(f"Date: {date}\r\n")
    if length is not None:
        lines.append(f"Content-Length: {length}\r\n")
    elif not close:
        lines.append("Transfer-Encoding: chunked\r\n")
    lines.append("Connection: close\r\n\r\n" if close else "\r\n")
    return "".join(lines).encode()


def serialize(response: Response, request: ParsedRequest, date: str) -> bytes:
    """Return the bytes of a complete response: status line, headers and body."""
    response_head = serialize_head(
        response.status,
        response.headers,
        response.warnings,
        date,
        length=len(response.body),
        close=not request.keep_alive,
    )
    return response_head if request.method == "HEAD" else response_head + response.body


def serialize_chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
