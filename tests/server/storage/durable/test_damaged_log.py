"""Tests that a damaged write-ahead log is detected. SQLite alone would ignore the damaged part."""

import asyncio
import json
import shutil

import pytest

from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.storage.durable.data_directory import DataError

MAPS = "/api/v1/namespaces/default/configmaps"
HEADER, FRAME = 32, 24 + 4096


def create_state(folder, writes=8):
    """Create the data directory of a killed server. All changes since the first checkpoint are in the log."""
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


def damage(folder, damaged_part):
    log = folder / "state.db-wal"
    content = bytearray(log.read_bytes())
    frames = (len(content) - HEADER) // FRAME
    if damaged_part == "removed":
        return log.unlink()
    if damaged_part == "cut":
        return log.write_bytes(content[: HEADER + frames // 2 * FRAME])
    if damaged_part == "emptied":
        return log.write_bytes(b"")
    frame = {"the first frame": 0, "a frame in the middle": frames // 2, "the last frame": frames - 1}.get(damaged_part)
    start = 8 if frame is None else HEADER + frame * FRAME + 2000
    content[start] ^= 0x20
    return log.write_bytes(content)


@pytest.mark.parametrize(
    "damaged_part",
    ["the header", "the first frame", "a frame in the middle", "the last frame", "cut", "emptied", "removed"],
)
def test_log_without_acknowledged_writes_is_rejected_and_not_changed(tmp_path, damaged_part):
    folder = create_state(tmp_path / "d")
    damage(folder, damaged_part)
    before = contents(folder)
    with pytest.raises(DataError) as raised:
        Server(data=folder)
    assert "lost writes" in str(raised.value)
    assert "was not changed" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert contents(folder) == before


def test_server_starts_without_lost_writes_after_the_file_is_removed(tmp_path):
    folder = create_state(tmp_path / "d")
    damage(folder, "the last frame")
    (folder / "acknowledged").unlink()
    server = Server(data=folder)
    names = [name for name, _ in server.store.table("", "configmaps").scan("default")]
    server.close()
    assert names == [f"default/a{number}" for number in range(7)]


def test_unfinished_write_is_not_reported_as_damage(tmp_path):
    folder = create_state(tmp_path / "d")
    with (folder / "state.db-wal").open("ab") as log:
        log.write(b"half a frame")
    server = Server(data=folder)
    assert len(list(server.store.table("", "configmaps").scan("default"))) == 8
    server.close()


def test_lost_secret_is_detected(tmp_path):
    server = Server(data=tmp_path / "live")
    before = (tmp_path / "live/state.db-wal").read_bytes()
    assert server.load_secret("key", lambda: b"made once") == b"made once"
    shutil.copytree(tmp_path / "live", tmp_path / "d")
    server.close()
    (tmp_path / "d/state.db-wal").write_bytes(before)
    with pytest.raises(DataError, match="lost writes"):
        Server(data=tmp_path / "d")


@pytest.mark.parametrize(
    "content", [b"", b"0 0", b"\xff" * 51, b"00000000000000000009 00000000000000000000 00000000\n"]
)
def test_damaged_acknowledgement_file_is_reported(tmp_path, content):
    folder = create_state(tmp_path / "d")
    (folder / "acknowledged").write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        Server(data=folder)
    assert (folder / "acknowledged").read_bytes() == content
