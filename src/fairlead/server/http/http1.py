"""HTTP/1.1 on the wire: requests out of bytes, answers into bytes. Nothing here waits or knows of sockets.

Strict: what two readers could take for different requests is refused, not guessed.
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

MAX_HEAD = 1 << 20  # as a real server
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class RejectedRequest(Exception):
    """A request that is not carried out, for what it is on the wire. Nothing after it on its connection can be read."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class ParsedRequest:
    """One request, its target parted into path (as it was sent) and query (decoded, malformed pairs left out)."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]  # see exchange.Request
    lasting: bool  # whether the connection goes on after the answer
    old: bool  # HTTP/1.0, which knows no chunks
    body: bytes


class RequestParser:
    """The requests in a stream of bytes, each once it is whole. llhttp reads them; what is held is bounded."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._unread = b""
        self._whole: deque[ParsedRequest] = deque()
        self._refused = 0  # the status that ends the stream
        self._in_head = True
        self._taken = 0  # bytes of the head, or of trailers, that were read and are not whole
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self.expected = False  # the client waits to be told to go on before it sends the body

    @property
    def ahead(self) -> int:
        """How many bytes wait to be looked at."""
        return len(self._unread)

    @property
    def more(self) -> bool:
        """Whether `next` may have something to say before more bytes come."""
        return bool(self._whole or self._unread or self._refused)

    def close(self) -> None:
        """Read nothing more. The parser and its callbacks hold each other, and the last request."""
        del self._parser

    def feed(self, data: bytes) -> None:
        self._unread = self._unread + data if self._unread else data

    def next(self) -> ParsedRequest | None:
        """The next request, None until more bytes have come. Raises Refused."""
        if not self._whole and self._unread and not self._refused:
            self._read()
        if self._whole:
            return self._whole.popleft()
        if self._refused:
            raise RejectedRequest(self._refused)
        return None

    def _read(self) -> None:
        data, self._unread = self._unread, b""
        self._taken += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._whole[-1].lasting = False  # answered as if it had not been asked; what follows is in no protocol
            self._refused = 400
        except httptools.HttpParserError:
            self._refused = self._refused or 400
        if self._taken > MAX_HEAD:
            self._refused = self._refused or 431

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body = b"", {}, bytearray()

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer, which does not count
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip(" \t")
        if key not in self._headers:
            self._headers[key] = text
        elif key.startswith("impersonate-"):
            self._headers[key] += f"\n{text}"
        elif key == "host" and self._headers[key] != text:
            self._refuse(400)

    def on_headers_complete(self) -> None:
        self._in_head, self._taken = False, 0
        if self._headers.get("transfer-encoding", "chunked").lower() != "chunked":
            self._refuse(501)
        if int(self._headers.get("content-length", 0)) > MAX_BODY:
            self._refuse(413)
        self.expected = self._headers.get("expect", "").lower() == "100-continue"

    def on_body(self, part: bytes) -> None:
        self._taken = 0
        self._body += part
        if len(self._body) > MAX_BODY:
            self._refuse(413)

    def on_message_complete(self) -> None:
        self._in_head, self._taken, self.expected = True, 0, False
        path, _, query = _origin(self._target.decode("utf-8", "replace")).partition("?")
        if _BAD_ESCAPE.search(path):
            self._refuse(400)
        self._whole.append(
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

    def _refuse(self, status: int) -> NoReturn:
        """Stop the parser too: it takes any exception of a callback for a bad request."""
        self._refused = status
        raise RejectedRequest(status)


def _origin(target: str) -> str:
    """A request target as it begins at the root: a proxy's names the server too."""
    if target.startswith("/"):
        return target
    scheme, parted, rest = target.partition("://")
    if not parted or scheme.lower() not in ("http", "https"):
        raise RejectedRequest(400)
    return "/" + rest.partition("/")[2]


def phrase(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}


def head(
    status: int, headers: dict[str, str], warnings: list[str], date: str, *, length: int | None, last: bool
) -> bytes:
    """The head of an answer, of a body in chunks where it has no length. `last`: the connection ends with it.

    Warnings that no header can hold are left out, as by a real server.
    """
    lines = [_LINES[status], *[f"{name}: {value}\r\n" for name, value in headers.items()]]
    lines += [f"Warning: {format_warning(text)}\r\n" for text in warnings if not _CONTROL.search(text)]
    lines.append(f"Date: {date}\r\n")
    if length is not None:
        lines.append(f"Content-Length: {length}\r\n")
    elif not last:
        lines.append("Transfer-Encoding: chunked\r\n")
    lines.append("Connection: close\r\n\r\n" if last else "\r\n")
    return "".join(lines).encode()


def whole(answer: Response, message: ParsedRequest, date: str) -> bytes:
    """A whole answer to a request."""
    last = not message.lasting
    made = head(answer.status, answer.headers, answer.warnings, date, length=len(answer.body), last=last)
    return made if message.method == "HEAD" else made + answer.body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
