"""Watch frames: one JSON document a line, in an answer that never ends."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

import msgspec

from fairlead.api.errors import ApiError
from fairlead.client import statuses
from fairlead.client.transport import Stream

T = TypeVar("T")


class Frame(NamedTuple):
    """One event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and the object's JSON, a copy of its own."""

    type: str
    raw: bytes


class WatchBroken(ConnectionError):
    """The stream did not end, it broke: cut inside a frame, silent for too long, or not a watch at all.

    What was yielded before is whole and in order: resume from it.
    """


class WatchSilent(WatchBroken):
    """Not a byte for so long that nobody may be there: ask anew, and see."""


class FrameSplitter:
    """Bytes in, cut anywhere; whole lines out. Splits at `\\n` alone: U+0085 and the like are text inside a frame."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that `chunk` completes. Cost is linear in the bytes, however large a frame is."""
        if b"\n" not in chunk:
            self._partial.append(chunk)
            return []
        first, *lines = chunk.split(b"\n")
        lines.insert(0, b"".join([*self._partial, first]))
        rest = lines.pop()
        self._partial = [rest] if rest else []
        return [line for line in lines if line and not line.isspace()]

    @property
    def partial(self) -> bool:
        """Whether a frame has begun and not ended."""
        return any(part and not part.isspace() for part in self._partial)


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_decode_event = msgspec.json.Decoder(_Event).decode
_TYPES = {kind.encode(): kind for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")}


def decode_frame(line: bytes) -> Frame:
    """The frame in `line`. Raises the ApiError that an ERROR frame carries, and WatchBroken on anything else.

    A frame as every server writes it is cut, not read: whoever decodes the object finds out whether it is one.
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
        raise WatchBroken("the watch ended with an error that is no Status")
    raise ApiError.of(status)


class Watch:
    """An open watch: iterate it for frames, in order.

    Ends when the server ends it. Raises the ApiError of an ERROR frame (410 among them), WatchBroken or another
    OSError when the stream broke. `silence` is how many seconds without a single byte mean that nobody is there.
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
                if self._splitter.partial:
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
                f"no byte on the watch for {self._silence:g} s although bookmarks were asked for: "
                "the connection is half-open, or the server has none for this kind"
            ) from error
