"""Tests of watch frames: any chunking gives the same frames, and a broken stream raises an error."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import ApiError, Expired
from fairlead.client.client import Client
from fairlead.client.watching import Frame, FrameSplitter, Watch, WatchBroken, decode_frame
from fairlead.server.app import Server
from fairlead.testing import virtual

texts = st.text(st.characters(exclude_categories=("Cs",)))


def line(event="ADDED", /, **obj):
    return json.dumps({"type": event, "object": obj}, ensure_ascii=False).encode() + b"\n"


class ByteStream:
    """A stream that returns the chunks.

    For a number it waits that many seconds; it raises a chunk that is an exception.
    """

    status, headers = 200, {}

    def __init__(self, response, *chunks):
        self.read = response(chunks=list(chunks)).read

    async def close(self):
        pass


@given(st.lists(texts, min_size=1), st.data())
def test_any_chunking_gives_the_same_frames(names, data):
    all_bytes = b"".join(line(name=name) for name in names)
    boundaries = sorted(data.draw(st.lists(st.integers(0, len(all_bytes)))))
    splitter = FrameSplitter()
    frames = []
    for start, end in zip([0, *boundaries], [*boundaries, len(all_bytes)], strict=True):
        frames += splitter.feed(all_bytes[start:end])
    assert [json.loads(decode_frame(frame).raw)["name"] for frame in frames] == names
    assert not splitter.has_partial_frame


@given(st.lists(texts, min_size=1))
def test_a_truncated_stream_gives_complete_frames_and_reports_a_partial_one(names):
    lines = [line(name=name) for name in names]
    all_bytes = b"".join(lines)
    for end in range(0, len(all_bytes) + 1, 7):
        splitter = FrameSplitter()
        frames = splitter.feed(all_bytes[:end])
        assert frames == [frame_line[:-1] for frame_line in lines[: len(frames)]]
        assert splitter.has_partial_frame == (sum(map(len, lines[: len(frames)])) != end)


def test_only_a_newline_ends_a_frame():
    text = "\x85 \u2028 \u2029 \x0b \x0c \x1c"  # str.splitlines splits at all of them
    [frame] = FrameSplitter().feed(line(text=text))
    assert json.loads(decode_frame(frame).raw) == {"text": text}


def test_a_chunk_boundary_inside_a_character_is_joined():
    all_bytes = line(text="naïve 😀")
    for boundary in range(len(all_bytes)):
        splitter = FrameSplitter()
        [frame] = splitter.feed(all_bytes[:boundary]) + splitter.feed(all_bytes[boundary:])
        assert json.loads(decode_frame(frame).raw) == {"text": "naïve 😀"}


def test_a_frame_does_not_keep_the_read_buffer_alive():
    frame = decode_frame(line(name="a"))
    assert frame == Frame("ADDED", b'{"name": "a"}')
    assert type(frame.raw) is bytes  # a Raw or a memoryview would keep the whole line in memory


def test_an_error_frame_raises_its_api_error():
    with pytest.raises(Expired, match="too old") as raised:
        decode_frame(line("ERROR", kind="Status", reason="Expired", code=410, message="too old resource version"))
    assert raised.value.code == 410


@pytest.mark.parametrize(
    "invalid_event", [b"<html>", b'{"type":"ADDED"', b'{"object":{}}', b'{"type":1,"object":{}}', b"\xff"]
)
def test_an_invalid_event_raises_watch_broken(invalid_event):
    with pytest.raises(WatchBroken, match="not a watch event"):
        decode_frame(invalid_event)


@pytest.mark.parametrize("invalid_event", [b"null", b"[]", b'{"reason":[]}', b'{"kind":"Status","code":"x"}'])
def test_an_error_frame_without_a_status_raises_watch_broken(invalid_event):
    with pytest.raises(WatchBroken, match="not a Status"):
        decode_frame(b'{"type":"ERROR","object":%b}' % invalid_event)


def read_watch(response, *chunks, silence=90.0):
    """Read a watch to its end. Return the types of its frames, and its error or None."""

    async def main():
        frames_read = []
        try:
            async for frame in Watch(ByteStream(response, *chunks), silence):
                frames_read.append(frame.type)  # noqa: PERF401 - those before a break count
        except (OSError, ApiError) as error:
            return frames_read, error
        return frames_read, None

    return virtual.run(main())


def test_bookmarks_are_yielded_and_the_end_stops_the_iteration(response):
    assert read_watch(response, line(), line("BOOKMARK")) == (["ADDED", "BOOKMARK"], None)


def test_a_stream_that_ends_inside_a_frame_raises_watch_broken(response):
    frames_read, error = read_watch(response, line() + line()[:-5])
    assert frames_read == ["ADDED"]
    assert isinstance(error, WatchBroken)


def test_frames_before_an_error_frame_are_delivered(response):
    frames_read, error = read_watch(response, line() + line("MODIFIED") + line("ERROR", reason="Expired", code=410))
    assert frames_read == ["ADDED", "MODIFIED"]
    assert isinstance(error, Expired)


def test_silence_raises_watch_silent_and_any_byte_prevents_it(response):
    assert read_watch(response, line(), 89, line("BOOKMARK"), 89, line()) == (["ADDED", "BOOKMARK", "ADDED"], None)
    frames_read, error = read_watch(response, line(), 91, line())
    assert frames_read == ["ADDED"]
    assert isinstance(error, WatchBroken)
    assert "half-open" in str(error)


def test_without_bookmarks_silence_does_not_raise(response):
    assert read_watch(response, line(), 10_000, line(), silence=None) == (["ADDED", "ADDED"], None)


def test_a_connection_reset_is_raised(response):
    frames_read, error = read_watch(response, line(), ConnectionResetError("gone"))
    assert frames_read == ["ADDED"]
    assert isinstance(error, ConnectionResetError)


def test_bookmarks_keep_an_idle_watch_of_the_embedded_server_alive():
    async def main():
        world = virtual.world()
        server = Server(world)
        client = Client(server.transport(), world)
        config_maps = await client.list(ConfigMap, "default")
        async with client.watch(ConfigMap, "default", resource_version=config_maps.resource_version) as watch:
            frames = [await anext(watch) for _ in range(10)]
        assert {frame.type for frame in frames} == {"BOOKMARK"}
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) >= 540
