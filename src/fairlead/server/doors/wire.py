"""HTTP/1.1 on the wire: requests out of bytes, answers into bytes. Nothing here waits or knows of sockets.

Strict: what two readers could take for different requests is refused, not guessed.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote_plus

from fairlead.server.encoding import MAX_BODY
from fairlead.server.exchange import Response, warning_header

MAX_HEAD = 1 << 20  # as a real server
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - the grammar's word
_START = re.compile(rf"({_TOKEN}) (\S+) HTTP/1\.([01])\Z")
_FIELDS = re.compile(rf"(?:\r\n{_TOKEN}:[^\r\n\0]*)*\Z")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Refused(Exception):
    """A request that is not carried out, for what it is on the wire. Nothing after it on its connection can be read."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class Message:
    """One request, its target parted into path (as it was sent) and query (decoded, malformed pairs left out)."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]  # see exchange.Request
    lasting: bool  # whether the connection goes on after the answer
    old: bool  # HTTP/1.0, which knows no chunks
    body: bytes = b""


class Requests:
    """The requests in a stream of bytes, each once it is whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._seen = 0  # how far the end of the head was looked for
        self._head: Message | None = None
        self._length: int | None = 0  # of the body, None: in chunks
        self._chunks = bytearray()
        self.expected = False  # the client waits to be told to go on before it sends the body

    def __len__(self) -> int:
        """How many bytes are held."""
        return len(self._bytes) + len(self._chunks)

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def next(self) -> Message | None:
        """The next request, None until more bytes have come. Raises Refused."""
        if self._head is None and not self._read_head():
            return None
        body = self._chunked() if self._length is None else self._sized(self._length)
        if body is None:
            return None
        message, self._head, self.expected = self._head, None, False
        assert message is not None
        message.body = body
        return message

    def _read_head(self) -> bool:
        end = self._bytes.find(b"\r\n\r\n", self._seen)
        if end < 0:
            if len(self._bytes) > MAX_HEAD:
                raise Refused(431)
            self._seen = max(0, len(self._bytes) - 3)
            return False
        text = self._bytes[:end].decode("utf-8", "replace")
        del self._bytes[: end + 4]
        self._seen = 0
        self._head = head = _head(text.lstrip("\r\n"))
        self._length = _length(head.headers)
        if self._length is not None and self._length > MAX_BODY:
            raise Refused(413)
        self.expected = "expect" in head.headers and head.headers["expect"].lower() == "100-continue"
        return True

    def _sized(self, length: int) -> bytes | None:
        if not length:
            return b""
        if len(self._bytes) < length:
            return None
        body = bytes(self._bytes[:length])
        del self._bytes[:length]
        return body

    def _chunked(self) -> bytes | None:
        while True:
            end = self._bytes.find(b"\r\n")
            if end < 0:
                if len(self._bytes) > MAX_HEAD:
                    raise Refused(400)
                return None
            found = _CHUNK.match(self._bytes[:end])
            if found is None:
                raise Refused(400)
            size = int(found[1], 16)
            if len(self._chunks) + size > MAX_BODY:
                raise Refused(413)
            if not size:
                return self._trailed(end)
            if len(self._bytes) < end + size + 4:
                return None
            if self._bytes[end + 2 + size : end + size + 4] != b"\r\n":
                raise Refused(400)
            self._chunks += self._bytes[end + 2 : end + 2 + size]
            del self._bytes[: end + size + 4]

    def _trailed(self, end: int) -> bytes | None:
        """The whole body, where what follows the last chunk has come too; it does not count."""
        last = self._bytes.find(b"\r\n\r\n", end)
        if last < 0:
            if len(self._bytes) > MAX_HEAD:
                raise Refused(431)
            return None
        body = bytes(self._chunks)
        self._chunks.clear()
        del self._bytes[: last + 4]
        return body


def _head(text: str) -> Message:
    start, _, _ = text.partition("\r\n")
    found = _START.match(start)
    if found is None or not _FIELDS.match(text, len(start)):
        raise Refused(400)
    method, target, minor = found.groups()
    headers: dict[str, str] = {}
    for line in text[len(start) + 2 :].split("\r\n") if len(text) > len(start) else ():
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if name not in headers:
            headers[name] = value
        elif name.startswith("impersonate-"):
            headers[name] += f"\n{value}"
        elif name in ("content-length", "transfer-encoding", "host") and headers[name] != value:
            raise Refused(400)
    path, _, query = _origin(target).partition("?")
    if _BAD_ESCAPE.search(path):
        raise Refused(400)
    connection = headers.get("connection", "").lower()
    lasting = "close" not in connection if minor == "1" else "keep-alive" in connection
    return Message(method, path, _query(query) if query else {}, headers, lasting, minor == "0")


def _origin(target: str) -> str:
    """A request target as it begins at the root: a proxy's names the server too."""
    if target.startswith("/"):
        return target
    scheme, parted, rest = target.partition("://")
    if not parted or scheme.lower() not in ("http", "https"):
        raise Refused(400)
    return "/" + rest.partition("/")[2]


def _query(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in text.split("&"):
        if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
            key, _, value = pair.partition("=")
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


def _length(headers: dict[str, str]) -> int | None:
    """The length of the body, None where it comes in chunks."""
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if length is not None:
            raise Refused(400)
        if coding.lower() != "chunked":
            raise Refused(501)
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise Refused(400)
    return int(length)


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
    lines += [f"Warning: {warning_header(text)}\r\n" for text in warnings if not _CONTROL.search(text)]
    lines.append(f"Date: {date}\r\n")
    if length is not None:
        lines.append(f"Content-Length: {length}\r\n")
    elif not last:
        lines.append("Transfer-Encoding: chunked\r\n")
    lines.append("Connection: close\r\n\r\n" if last else "\r\n")
    return "".join(lines).encode()


def whole(answer: Response, message: Message, date: str) -> bytes:
    """A whole answer to a request."""
    last = not message.lasting
    made = head(answer.status, answer.headers, answer.warnings, date, length=len(answer.body), last=last)
    return made if message.method == "HEAD" else made + answer.body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
