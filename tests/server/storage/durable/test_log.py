"""A damaged write-ahead log: SQLite would go on without what it cannot read, and what was acknowledged is missed."""

import asyncio
import json
import shutil

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.storage.durable.folder import DataError

MAPS = "/api/v1/namespaces/default/configmaps"
HEADER, FRAME = 32, 24 + 4096


def killed(folder, writes=8):
    """The directory as a process that was killed leaves it: everything since the first checkpoint is in the log."""
    server = Server(data=folder.with_name("live"))

    async def fill():
        for number in range(writes):
            body = json.dumps({"metadata": {"name": f"a{number}"}, "data": {"k": "x" * 3000}}).encode()
            assert (await server.handle(Request("POST", MAPS, {}, {}, body))).status == 201

    asyncio.run(fill())
    shutil.copytree(folder.with_name("live"), folder)
    server.close()
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("lock", "state.db-shm")}


def damaged(folder, place):
    log = folder / "state.db-wal"
    whole = bytearray(log.read_bytes())
    frames = (len(whole) - HEADER) // FRAME
    if place == "removed":
        return log.unlink()
    if place == "cut":
        return log.write_bytes(whole[: HEADER + frames // 2 * FRAME])
    if place == "emptied":
        return log.write_bytes(b"")
    frame = {"the first frame": 0, "a frame in the middle": frames // 2, "the last frame": frames - 1}.get(place)
    start = 8 if frame is None else HEADER + frame * FRAME + 2000
    whole[start] ^= 0x20
    return log.write_bytes(whole)


@pytest.mark.parametrize(
    "place", ["the header", "the first frame", "a frame in the middle", "the last frame", "cut", "emptied", "removed"]
)
def test_a_log_that_lost_acknowledged_writes_is_refused_and_left_as_it_is(tmp_path, place):
    folder = killed(tmp_path / "d")
    damaged(folder, place)
    before = contents(folder)
    with pytest.raises(DataError) as raised:
        Server(data=folder)
    assert "lost writes" in str(raised.value)
    assert "left as it is" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert contents(folder) == before


def test_whoever_removes_the_note_goes_on_with_what_is_left(tmp_path):
    folder = killed(tmp_path / "d")
    damaged(folder, "the last frame")
    (folder / "acknowledged").unlink()
    server = Server(data=folder)
    names = [name for name, _ in server.store.table("", "configmaps").scan(None)]
    server.close()
    assert names == [f"default/a{number}" for number in range(7)]


def test_a_write_that_never_finished_is_no_damage(tmp_path):
    folder = killed(tmp_path / "d")
    with (folder / "state.db-wal").open("ab") as log:
        log.write(b"half a frame")
    server = Server(data=folder)
    assert len(list(server.store.table("", "configmaps").scan(None))) == 8
    server.close()


def test_a_lost_secret_is_noticed_too(tmp_path):
    server = Server(data=tmp_path / "live")
    before = (tmp_path / "live/state.db-wal").read_bytes()
    assert server.load_secret("key", lambda: b"made once") == b"made once"
    shutil.copytree(tmp_path / "live", tmp_path / "d")
    server.close()
    (tmp_path / "d/state.db-wal").write_bytes(before)
    with pytest.raises(DataError, match="lost writes"):
        Server(data=tmp_path / "d")


@pytest.mark.parametrize("text", [b"", b"0 0", b"\xff" * 51, b"00000000000000000009 00000000000000000000 00000000\n"])
def test_a_damaged_note_is_told(tmp_path, text):
    folder = killed(tmp_path / "d")
    (folder / "acknowledged").write_bytes(text)
    with pytest.raises(DataError, match="damaged"):
        Server(data=folder)
    assert (folder / "acknowledged").read_bytes() == text
