"""Watch frames: any cut of the bytes gives the same frames, and a broken stream is told from one that ended."""

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
    """A stream of the given chunks; a number is waited for, an exception raised."""

    status, headers = 200, {}

    def __init__(self, answer, *chunks):
        self.read = answer(chunks=list(chunks)).read

    async def close(self):
        pass


@given(st.lists(texts, min_size=1), st.data())
def test_any_cut_gives_the_same_frames(names, data):
    whole = b"".join(line(name=name) for name in names)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    splitter = FrameSplitter()
    frames = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        frames += splitter.feed(whole[start:end])
    assert [json.loads(decode_frame(frame).raw)["name"] for frame in frames] == names
    assert not splitter.has_partial_frame


@given(st.lists(texts, min_size=1))
def test_a_stream_that_stops_anywhere_gives_the_whole_frames_and_says_whether_one_was_cut(names):
    lines = [line(name=name) for name in names]
    whole = b"".join(lines)
    for end in range(0, len(whole) + 1, 7):
        splitter = FrameSplitter()
        frames = splitter.feed(whole[:end])
        assert frames == [each[:-1] for each in lines[: len(frames)]]
        assert splitter.has_partial_frame == (sum(map(len, lines[: len(frames)])) != end)


def test_only_a_newline_ends_a_frame():
    text = "\x85 \u2028 \u2029 \x0b \x0c \x1c"  # all of them line ends to str.splitlines
    [frame] = FrameSplitter().feed(line(text=text))
    assert json.loads(decode_frame(frame).raw) == {"text": text}


def test_a_frame_cut_inside_a_character_is_whole_again():
    whole = line(text="naïve 😀")
    for cut in range(len(whole)):
        splitter = FrameSplitter()
        [frame] = splitter.feed(whole[:cut]) + splitter.feed(whole[cut:])
        assert json.loads(decode_frame(frame).raw) == {"text": "naïve 😀"}


def test_the_object_is_a_copy_that_keeps_no_buffer_alive():
    frame = decode_frame(line(name="a"))
    assert frame == Frame("ADDED", b'{"name": "a"}')
    assert type(frame.raw) is bytes  # bytes own their memory; a Raw or a memoryview is a window on the whole line


def test_an_error_frame_raises_what_it_carries():
    with pytest.raises(Expired, match="too old") as raised:
        decode_frame(line("ERROR", kind="Status", reason="Expired", code=410, message="too old resource version"))
    assert raised.value.code == 410


@pytest.mark.parametrize("bad", [b"<html>", b'{"type":"ADDED"', b'{"object":{}}', b'{"type":1,"object":{}}', b"\xff"])
def test_what_is_no_event_breaks_the_watch(bad):
    with pytest.raises(WatchBroken, match="not a watch event"):
        decode_frame(bad)


@pytest.mark.parametrize("bad", [b"null", b"[]", b'{"reason":[]}', b'{"kind":"Status","code":"x"}'])
def test_an_error_that_is_no_status_breaks_the_watch(bad):
    with pytest.raises(WatchBroken, match="not a Status"):
        decode_frame(b'{"type":"ERROR","object":%b}' % bad)


def watched(answer, *chunks, silence=90.0):
    """(frames seen, how it ended)"""

    async def main():
        seen = []
        try:
            async for frame in Watch(Bytes(answer, *chunks), silence):
                seen.append(frame.type)  # noqa: PERF401 - those before a break count
        except (OSError, ApiError) as error:
            return seen, error
        return seen, None

    return virtual.run(main())


def test_bookmarks_are_yielded_and_a_proper_end_is_an_end(answer):
    assert watched(answer, line(), line("BOOKMARK")) == (["ADDED", "BOOKMARK"], None)


def test_a_stream_that_ends_inside_a_frame_is_broken(answer):
    seen, error = watched(answer, line() + line()[:-5])
    assert seen == ["ADDED"]
    assert isinstance(error, WatchBroken)


def test_frames_before_an_error_frame_are_delivered(answer):
    seen, error = watched(answer, line() + line("MODIFIED") + line("ERROR", reason="Expired", code=410))
    assert seen == ["ADDED", "MODIFIED"]
    assert isinstance(error, Expired)


def test_silence_breaks_the_watch_and_bytes_keep_it(answer):
    assert watched(answer, line(), 89, line("BOOKMARK"), 89, line()) == (["ADDED", "BOOKMARK", "ADDED"], None)
    seen, error = watched(answer, line(), 91, line())
    assert seen == ["ADDED"]
    assert isinstance(error, WatchBroken)
    assert "half-open" in str(error)


def test_without_bookmarks_silence_means_nothing(answer):
    assert watched(answer, line(), 10_000, line(), silence=None) == (["ADDED", "ADDED"], None)


def test_a_reset_is_passed_on(answer):
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
