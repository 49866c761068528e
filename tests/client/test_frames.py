"""Tests of watch frames: any chunking gives the same frames, and a broken stream differs from an ended one."""

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


class Bytes:
    """A stream of the given chunks; it waits for a number and raises an exception."""

    status, headers = 200, {}

    def __init__(self, answer, *chunks):
        self.read = answer(chunks=list(chunks)).read

    async def close(self):
        pass


@given(st.lists(texts, min_size=1), st.data())
def test_any_chunking_gives_the_same_frames(names, data):
    whole = b"".join(line(name=name) for name in names)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    splitter = FrameSplitter()
    frames = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        frames += splitter.feed(whole[start:end])
    assert [json.loads(decode_frame(frame).raw)["name"] for frame in frames] == names
    assert not splitter.has_partial_frame


@given(st.lists(texts, min_size=1))
def test_a_truncated_stream_gives_complete_frames_and_reports_a_partial_one(names):
    lines = [line(name=name) for name in names]
    whole = b"".join(lines)
    for end in range(0, len(whole) + 1, 7):
        splitter = FrameSplitter()
        frames = splitter.feed(whole[:end])
        assert frames == [each[:-1] for each in lines[: len(frames)]]
        assert splitter.has_partial_frame == (sum(map(len, lines[: len(frames)])) != end)


def test_only_a_newline_ends_a_frame():
    text = "\x85 \u2028 \u2029 \x0b \x0c \x1c"  # str.splitlines splits at all of them
    [frame] = FrameSplitter().feed(line(text=text))
    assert json.loads(decode_frame(frame).raw) == {"text": text}


def test_a_chunk_boundary_inside_a_character_is_joined():
    whole = line(text="naïve 😀")
    for cut in range(len(whole)):
        splitter = FrameSplitter()
        [frame] = splitter.feed(whole[:cut]) + splitter.feed(whole[cut:])
        assert json.loads(decode_frame(frame).raw) == {"text": "naïve 😀"}


def test_a_frame_does_not_keep_the_read_buffer_alive():
    frame = decode_frame(line(name="a"))
    assert frame == Frame("ADDED", b'{"name": "a"}')
    assert type(frame.raw) is bytes  # a Raw or a memoryview would keep the whole line in memory


def test_an_error_frame_raises_its_api_error():
    with pytest.raises(Expired, match="too old") as raised:
        decode_frame(line("ERROR", kind="Status", reason="Expired", code=410, message="too old resource version"))
    assert raised.value.code == 410


@pytest.mark.parametrize("bad", [b"<html>", b'{"type":"ADDED"', b'{"object":{}}', b'{"type":1,"object":{}}', b"\xff"])
def test_an_invalid_event_raises_watch_broken(bad):
    with pytest.raises(WatchBroken, match="not a watch event"):
        decode_frame(bad)


@pytest.mark.parametrize("bad", [b"null", b"[]", b'{"reason":[]}', b'{"kind":"Status","code":"x"}'])
def test_an_error_frame_without_a_status_raises_watch_broken(bad):
    with pytest.raises(WatchBroken, match="not a Status"):
        decode_frame(b'{"type":"ERROR","object":%b}' % bad)


def watched(answer, *chunks, silence=90.0):
    """Return (frame types, error or None)."""

    async def main():
        seen = []
        try:
            async for frame in Watch(Bytes(answer, *chunks), silence):
                seen.append(frame.type)  # noqa: PERF401 - those before a break count
        except (OSError, ApiError) as error:
            return seen, error
        return seen, None

    return virtual.run(main())


def test_bookmarks_are_yielded_and_the_end_stops_the_iteration(answer):
    assert watched(answer, line(), line("BOOKMARK")) == (["ADDED", "BOOKMARK"], None)


def test_a_stream_that_ends_inside_a_frame_raises_watch_broken(answer):
    seen, error = watched(answer, line() + line()[:-5])
    assert seen == ["ADDED"]
    assert isinstance(error, WatchBroken)


def test_frames_before_an_error_frame_are_delivered(answer):
    seen, error = watched(answer, line() + line("MODIFIED") + line("ERROR", reason="Expired", code=410))
    assert seen == ["ADDED", "MODIFIED"]
    assert isinstance(error, Expired)


def test_silence_raises_watch_silent_and_any_byte_prevents_it(answer):
    assert watched(answer, line(), 89, line("BOOKMARK"), 89, line()) == (["ADDED", "BOOKMARK", "ADDED"], None)
    seen, error = watched(answer, line(), 91, line())
    assert seen == ["ADDED"]
    assert isinstance(error, WatchBroken)
    assert "half-open" in str(error)


def test_without_bookmarks_silence_does_not_raise(answer):
    assert watched(answer, line(), 10_000, line(), silence=None) == (["ADDED", "ADDED"], None)


def test_a_connection_reset_is_raised(answer):
    seen, error = watched(answer, line(), ConnectionResetError("gone"))
    assert seen == ["ADDED"]
    assert isinstance(error, ConnectionResetError)


def test_bookmarks_keep_an_idle_watch_of_the_embedded_server_alive():
    async def main():
        world = virtual.world()
        server = Server(world)
        client = Client(server.transport(), world)
        listed = await client.list(ConfigMap, "default")
        async with client.watch(ConfigMap, "default", resource_version=listed.resource_version) as watch:
            frames = [await anext(watch) for _ in range(10)]
        assert {frame.type for frame in frames} == {"BOOKMARK"}
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) >= 540
