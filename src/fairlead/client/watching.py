"""Parse the frames of a watch response, which has one JSON document per line and does not end."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

import msgspec

from fairlead.api.errors import ApiError
from fairlead.client import statuses
from fairlead.client.transport import Stream

T = TypeVar("T")

# Ten times the largest object that etcd stores (1.5 MiB). A frame without end is cut.
MAX_FRAME = 2**24


class Frame(NamedTuple):
    """One event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and a copy of the object's JSON."""

    type: str
    raw: bytes


class WatchBroken(ConnectionError):
    """The watch broke: it ended inside a frame, was silent for too long, or the response is not a watch.

    All frames before the error were complete and in order: resume from the last one.
    """


class WatchSilent(WatchBroken):
    """The server sent nothing for so long that the connection may be dead. Watch again."""


class FrameSplitter:
    """Splits chunks of bytes into lines at `\\n`. Other line breaks, such as U+0085, are text inside a frame.

    Raises: WatchBroken if a frame is longer than MAX_FRAME, which also bounds the memory of an incomplete frame.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._partial_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the frames that are complete with `chunk`. The cost is linear in the bytes, also for large frames."""
        first, *lines = chunk.split(b"\n")
        self._partial_size += len(first)
        if self._partial_size > MAX_FRAME:
            raise WatchBroken(
                f"a frame of the watch is longer than {MAX_FRAME:,} bytes: check the server's address and the proxies "
                f"on the way"
            )
        self._partial.append(first)
        if not lines:
            return []
        lines.insert(0, b"".join(self._partial))
        incomplete_line = lines.pop()
        self._partial, self._partial_size = [incomplete_line] if incomplete_line else [], len(incomplete_line)
        return [line for line in lines if line and not line.isspace()]

    @property
    def has_partial_frame(self) -> bool:
        """Whether the first bytes of a frame have arrived, but not its end."""
        return any(part and not part.isspace() for part in self._partial)


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode
_TYPES = {kind.encode(): kind for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")}


def decode_frame(line: bytes) -> Frame:
    """Return the frame in `line`. Raises the ApiError of an ERROR frame, and WatchBroken if `line` is not a frame.

    For speed, the object of a frame in the usual form is not parsed. If it is invalid JSON, the caller that decodes the
    object finds out.
    """
    end = line.find(b'","object":{', 9, 32)
    if end > 0 and line.startswith(b'{"type":"') and line.endswith(b"}}"):
        kind = _TYPES.get(line[9:end])
        if kind is not None:
            return Frame(kind, line[end + 11 : -1])
    try:
        event = _decode_event(line)
        if event.type != "ERROR":
            return Frame(event.type, bytes(event.object))  # bytes() copies: a Raw would keep the whole line alive
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WatchBroken(f"a frame of the watch is not a watch event: {error}") from error
    status = statuses.read(event.object)
    if status is None:
        raise WatchBroken("the watch ended with an error that is not a Status")
    raise ApiError.of(status)


class Watch:
    """An open watch: an async iterator of the frames that the server sends.

    The iteration ends when the server ends the watch. After `silence` seconds without a byte from the server, the
    connection counts as dead and the iteration raises WatchSilent.

    Raises: the ApiError of an ERROR frame (such as 410), WatchBroken or another OSError if the connection broke.
    """

    def __init__(self, stream: Stream, silence: float | None) -> None:
        self._stream = stream
        self._silence = silence
        self._splitter = FrameSplitter()
        self._lines: deque[bytes] = deque()

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> Frame:
        while not self._lines:
            chunk = await self._next(self._stream.read())
            if not chunk:
                if self._splitter.has_partial_frame:
                    raise WatchBroken("the watch was cut in the middle of a frame")
                raise StopAsyncIteration
            self._lines.extend(self._splitter.feed(chunk))
        return decode_frame(self._lines.popleft())

    async def _next(self, read: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._silence) as silence:
                return await read
        except TimeoutError as error:
            if not silence.expired():
                raise
            raise WatchSilent(
                f"no byte on the watch for {self._silence:g} s although bookmarks were requested: "
                "the connection is half-open, or the server sends none for this kind"
            ) from error
