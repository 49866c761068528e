"""State in a directory: all of it is back after a restart, and nothing is told that is not on the disk."""

import asyncio
import contextlib
import json
import shutil
import sqlite3
import subprocess
import threading

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.http.messages import Request
from fairlead.server.storage.durable.folder import DataError
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
WIDGET = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}


@contextlib.contextmanager
def serving(folder, **options):
    server = Server(data=folder, **options)
    try:
        yield server
    finally:
        server.close()


async def send(server, method, path, body=None, **query):
    asked = {key: [value] for key, value in query.items()}
    data = b"" if body is None else json.dumps(body).encode()
    answer = await server.handle(Request(method, path, asked, {"user-agent": "test"}, data))
    return answer.status, json.loads(answer.body)


def named(name, **fields):
    return {"metadata": {"name": name}, **fields}


async def everything(server):
    """What can be read of the server, by path."""
    paths = [MAPS, DEFINITIONS, "/api/v1/namespaces", "/apis", "/apis/example.com/v1", WIDGETS]
    return {path: (await send(server, "GET", path)) for path in paths}


async def test_everything_is_back_after_a_restart(tmp_path):
    with serving(tmp_path / "d", authorization="RBAC", tokens=["t"]) as server:
        api = server.transport()
        for path, body in (
            (DEFINITIONS, WIDGET),
            (MAPS, named("kept", data={"a": "<ä>"})),
            (MAPS, named("gone")),
            (WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", **named("w", spec={"size": 3})}),
        ):
            assert (await api.request(HttpRequest("POST", path, body=json.dumps(body).encode()))).status == 201
        assert (await api.request(HttpRequest("DELETE", f"{MAPS}/gone"))).status == 200
        before = [
            json.loads((await api.request(HttpRequest("GET", path))).body) for path in (MAPS, WIDGETS, DEFINITIONS)
        ]
        version = server.store.version
    with serving(tmp_path / "d", authorization="RBAC", tokens=["t"]) as server:
        api = server.transport()
        after = [
            json.loads((await api.request(HttpRequest("GET", path))).body) for path in (MAPS, WIDGETS, DEFINITIONS)
        ]
        assert after == before
        assert server.store.version == version  # starting writes nothing that is there already
        refused = {"apiVersion": "example.com/v1", "kind": "Widget", **named("x", spec={"size": "big"})}
        assert (await api.request(HttpRequest("POST", WIDGETS, body=json.dumps(refused).encode()))).status == 422
        patched = await api.request(
            HttpRequest(
                "PATCH",
                f"{MAPS}/kept",
                query={"fieldManager": "m", "force": "true"},
                headers={"Content-Type": "application/apply-patch+yaml"},
                body=b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"},"data":{"b":"2"}}',
            )
        )
        assert json.loads(patched.body)["data"] == {"a": "<ä>", "b": "2"}
        assert json.loads(patched.body)["metadata"]["resourceVersion"] == str(version + 1)


async def frames(server, version):
    reply = await server.transport().request(
        HttpRequest("GET", MAPS, query={"watch": "true", "resourceVersion": str(version), "timeoutSeconds": "1"})
    )
    return [json.loads(line) for line in reply.body.splitlines()]


def told(frame):
    return frame["type"], frame["object"]["metadata"]["name"], frame["object"].get("data")


def test_a_watch_resumes_across_a_restart(tmp_path):
    async def main():
        with serving(tmp_path / "d", world=virtual.world()) as server:
            await send(server, "POST", MAPS, named("a"))
            seen = server.store.version
            await send(server, "PUT", f"{MAPS}/a", named("a", data={"k": "1"}))
            await send(server, "POST", MAPS, named("b"))
            await send(server, "DELETE", f"{MAPS}/a")
            before = await frames(server, seen)
        with serving(tmp_path / "d", world=virtual.world()) as server:
            assert await frames(server, seen) == before
            assert [told(frame) for frame in before] == [
                ("MODIFIED", "a", {"k": "1"}),
                ("ADDED", "b", None),
                ("DELETED", "a", {"k": "1"}),
            ]
            status, page = await send(server, "GET", MAPS, resourceVersion=str(seen), resourceVersionMatch="Exact")
            assert (status, [item["metadata"]["name"] for item in page["items"]]) == (200, ["a"])

    virtual.run(main())


def test_history_on_the_disk_is_bounded_as_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("fairlead.server.app.Store", lambda: Store(history=10))
    from fairlead.server.storage.store import Store

    async def main():
        with serving(tmp_path / "d", world=virtual.world()) as server:
            for name in ("a", "b", "gone"):
                await send(server, "POST", MAPS, named(name))
            await send(server, "DELETE", f"{MAPS}/gone")
            old = server.store.version
            for number in range(60):
                await send(server, "PUT", f"{MAPS}/a", named("a", data={"n": str(number)}))
            table = server.store.table("", "configmaps")
            expected = [event.version for event in table.events]
            floor = table.floor
        rows = sqlite3.connect(tmp_path / "d/state.db")
        (count,) = rows.execute("SELECT count(*) FROM revisions WHERE plural = 'configmaps'").fetchone()
        rows.close()
        assert count <= 23  # twice the history, and the two objects
        with serving(tmp_path / "d", world=virtual.world()) as server:
            table = server.store.table("", "configmaps")
            assert ([event.version for event in table.events], table.floor) == (expected, floor)
            assert [name for name, _ in table.scan(None)] == ["default/a", "default/b"]
            (error,) = await frames(server, old)
            assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
            assert table.events[0].type == "MODIFIED"
            assert table.events[0].previous is not None

    virtual.run(main())


async def test_nothing_is_told_before_it_is_on_the_disk(tmp_path, monkeypatch):
    with serving(tmp_path / "d") as server:
        await send(server, "GET", MAPS)
        database = server._journal._database
        commit, may = database.commit, threading.Event()
        monkeypatch.setattr(database, "commit", lambda *batch: may.wait(10) and commit(*batch))
        stream = await server.transport().stream(
            HttpRequest("GET", MAPS, query={"watch": "true", "resourceVersion": "0"})
        )
        waiting = [
            asyncio.ensure_future(send(server, "POST", MAPS, named("a"))),
            asyncio.ensure_future(send(server, "GET", f"{MAPS}/a")),
            asyncio.ensure_future(send(server, "GET", MAPS)),
            asyncio.ensure_future(stream.read()),
        ]
        for _ in range(100):
            await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        may.set()
        created, read, listed, frame = await asyncio.gather(*waiting)
        assert (created[0], read[0], len(listed[1]["items"])) == (201, 200, 1)
        assert b'"name":"a"' in frame
        await stream.close()


async def test_writes_that_come_together_are_committed_together(tmp_path, monkeypatch):
    with serving(tmp_path / "d") as server:
        await send(server, "GET", MAPS)
        database = server._journal._database
        commit, sizes = database.commit, []

        def counted(revisions, floors):
            sizes.append(len(revisions))
            commit(revisions, floors)

        monkeypatch.setattr(database, "commit", counted)
        answers = await asyncio.gather(*(send(server, "POST", MAPS, named(f"a{n}")) for n in range(50)))
        assert {status for status, _ in answers} == {201}
        assert sum(sizes) == 50
        assert len(sizes) <= 3


def limit(server, pages):
    server._journal._database._connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_full_disk_refuses_writes_and_leaves_no_trace_of_them(tmp_path, caplog):
    with serving(tmp_path / "d", controllers=["gc"]) as server:
        await send(server, "POST", MAPS, named("a", data={"k": "1"}))
        await send(server, "POST", DEFINITIONS, WIDGET)
        before = await everything(server)
        stream = await server.transport().stream(
            HttpRequest(
                "GET", MAPS, query={"watch": "true", "resourceVersion": before[MAPS][1]["metadata"]["resourceVersion"]}
            )
        )
        watching = asyncio.ensure_future(stream.read())
        await asyncio.sleep(0)
        limit(server, 1)  # SQLite makes of it: no more than there are
        big = {"k": "x" * 100_000}
        other = json.loads(json.dumps(WIDGET).replace("idget", "adget"))
        refused = await asyncio.gather(
            send(server, "PUT", f"{MAPS}/a", named("a", data=big)),
            send(server, "POST", MAPS, named("b", data=big)),
            send(server, "POST", DEFINITIONS, {**other, "metadata": {"name": "wadgets.example.com"}}),
            send(server, "DELETE", f"{DEFINITIONS}/widgets.example.com"),
        )
        assert {status for status, _ in refused} == {500}
        assert "database or disk is full" in refused[0][1]["message"]
        assert "refused" in caplog.text
        assert await everything(server) == before
        assert await watching == b""  # ended: what it might have read is no more
        limit(server, 1_000_000)
        status, created = await send(server, "POST", MAPS, named("b", data=big))
        assert (status, created["metadata"]["resourceVersion"]) == (201, str(server.store.version))
        now = await everything(server)
    with serving(tmp_path / "d") as server:
        assert await everything(server) == now


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of its own that a few writes fill."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "fairlead", str(folder)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"a small disk needs root: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="mount is not there")
async def test_a_disk_that_fills_up_refuses_writes_until_there_is_room(tmp_path, caplog):
    with small_disk(tmp_path / "disk", "3m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 1_000_000)
        with serving(disk / "d", controllers=["gc"]) as server:
            kept = []
            while True:
                name = f"a{len(kept)}"
                status, _ = await send(server, "POST", MAPS, named(name, data={"k": "x" * 20_000}))
                if status != 201:
                    break
                kept.append(name)
            assert status == 500
            assert 10 < len(kept) < 200
            status, page = await send(server, "GET", MAPS)
            assert [item["metadata"]["name"] for item in page["items"]] == sorted(kept)
            assert (await send(server, "POST", MAPS, named("still-full", data={"k": "x" * 20_000})))[0] == 500
            ballast.unlink()
            assert (await send(server, "POST", MAPS, named("room")))[0] == 201
        with serving(disk / "d") as server:
            status, page = await send(server, "GET", MAPS)
            assert [item["metadata"]["name"] for item in page["items"]] == sorted([*kept, "room"])


def test_a_disk_that_is_full_from_the_start_is_one_line(tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        (disk / "ballast").write_bytes(b"x" * 40_000)
        assert "disk" in refused(disk / "d")


async def test_reads_go_on_while_writes_are_refused(tmp_path, caplog):
    with serving(tmp_path / "d") as server:
        await send(server, "POST", MAPS, named("a"))
        limit(server, 1)
        answers = await asyncio.gather(
            send(server, "POST", MAPS, named("b", data={"k": "x" * 100_000})),
            send(server, "GET", f"{MAPS}/b"),
            send(server, "GET", f"{MAPS}/a"),
        )
        assert [status for status, _ in answers] == [500, 404, 200]


def refused(folder):
    with pytest.raises(DataError) as raised:
        Server(data=folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name in ("state.db", "state.db-wal")}


def filled(folder):
    with serving(folder) as server:
        answers = asyncio.run(send(server, "POST", MAPS, named("a", data={"k": "x" * 20_000})))
    assert answers[0] == 201
    return folder


@pytest.mark.parametrize("place", ["the header", "the pages", "an object"])
def test_a_damaged_file_is_left_as_it_is(tmp_path, place):
    folder = filled(tmp_path / "d")
    whole = bytearray((folder / "state.db").read_bytes())
    start = {"the header": 0, "the pages": 4096, "an object": whole.index(b"xxxxxxxx")}[place]
    whole[start : start + 50] = b"y" * 50
    (folder / "state.db").write_bytes(whole)
    before = contents(folder)
    message = refused(folder)
    assert "left as it is" in message
    assert "another directory" in message
    assert contents(folder) == before


@pytest.mark.parametrize("size", [0, 50, 4096, 10_000])
def test_a_cut_file_is_left_as_it_is(tmp_path, size):
    folder = filled(tmp_path / "d")
    (folder / "state.db").write_bytes((folder / "state.db").read_bytes()[:size])
    before = contents(folder)
    assert "left as it is" in refused(folder)
    assert contents(folder) == before


def test_a_revision_that_is_no_object_is_told_as_damage(tmp_path):
    folder = filled(tmp_path / "d")
    rows = sqlite3.connect(folder / "state.db")
    rows.execute("UPDATE revisions SET object = ?", (b"[1",))
    rows.commit()
    rows.close()
    assert "damaged" in refused(folder)


def test_a_changed_secret_is_told_as_damage(tmp_path):
    with serving(tmp_path / "d") as server:
        server.load_secret("key", lambda: b"made once")
    whole = (tmp_path / "d/state.db").read_bytes()
    (tmp_path / "d/state.db").write_bytes(whole.replace(b"made once", b"made oncf"))
    assert "secret 'key'" in refused(tmp_path / "d")


def test_a_foreign_file_is_left_as_it_is(tmp_path):
    (tmp_path / "d").mkdir(mode=0o700)
    rows = sqlite3.connect(tmp_path / "d/state.db")
    rows.execute("CREATE TABLE theirs (x)")
    rows.commit()
    rows.close()
    before = contents(tmp_path / "d")
    assert "not fairlead's" in refused(tmp_path / "d")
    assert contents(tmp_path / "d") == before


def test_a_newer_format_is_left_as_it_is(tmp_path):
    folder = filled(tmp_path / "d")
    rows = sqlite3.connect(folder / "state.db")
    rows.execute("PRAGMA user_version = 7")
    rows.execute("PRAGMA journal_mode = DELETE")
    rows.close()
    before = contents(folder)
    assert "format 7" in refused(folder)
    assert contents(folder) == before


def test_a_second_server_is_refused_until_the_first_is_closed(tmp_path):
    with serving(tmp_path / "d"):
        assert "another server holds" in refused(tmp_path / "d")
    with serving(tmp_path / "d"):
        pass


def test_the_directory_is_its_owners_alone(tmp_path):
    with serving(tmp_path / "d"):
        assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "d/state.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "d").chmod(0o750)
    assert f"chmod 700 {tmp_path / 'd'}" in refused(tmp_path / "d")


def test_links_are_not_followed(tmp_path):
    folder = filled(tmp_path / "d")
    (tmp_path / "link").symlink_to(folder)
    assert "is a link" in refused(tmp_path / "link")
    (folder / "state.db").rename(tmp_path / "elsewhere")
    (folder / "state.db").symlink_to(tmp_path / "elsewhere")
    assert "is a link" in refused(folder)
    assert "cannot make" in refused(tmp_path / "no" / "such")
    (tmp_path / "file").write_text("")
    assert "no directory" in refused(tmp_path / "file")


def test_controllers_try_again_what_could_not_be_stored_and_keep_no_reader_waiting(tmp_path, monkeypatch, caplog):
    async def main():
        with serving(tmp_path / "d", world=virtual.world(), controllers=["gc"]) as server:
            _, owner = await send(server, "POST", MAPS, named("owner"))
            uid = owner["metadata"]["uid"]
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
            child = {"metadata": {"name": "child", "ownerReferences": [reference]}}
            assert (await send(server, "POST", MAPS, child))[0] == 201
            server.respond(Request("DELETE", f"{MAPS}/owner", {}, {}))  # nobody has been told yet
            database = server._journal._database
            with monkeypatch.context() as broken:

                def refuse(*batch):
                    raise sqlite3.OperationalError("database or disk is full")

                broken.setattr(database, "commit", refuse)
                for _ in range(3):
                    assert (await send(server, "GET", f"{MAPS}/owner"))[0] == 200
                    assert (await send(server, "GET", f"{MAPS}/child"))[0] == 200
                    assert (await send(server, "DELETE", f"{MAPS}/owner"))[0] == 500
                    await asyncio.sleep(5)
            assert (await send(server, "DELETE", f"{MAPS}/owner"))[0] == 200
            await asyncio.sleep(5)
            assert (await send(server, "GET", f"{MAPS}/child"))[0] == 404

    virtual.run(main())


async def test_clients_trust_the_next_process_too(tmp_path):
    path = "/api/v1/namespaces/default/serviceaccounts"
    with serving(tmp_path / "d", tokens=["t"], authorization="RBAC") as server:
        api = server.transport()
        await api.request(HttpRequest("POST", path, body=b'{"metadata":{"name":"sa"}}'))
        issued = json.loads((await api.request(HttpRequest("POST", f"{path}/sa/token", body=b'{"spec":{}}'))).body)
        listening = await server.listen()
        await listening.close()
    with serving(tmp_path / "d", tokens=["t"], authorization="RBAC") as server:
        again = await server.listen()
        await again.close()
        assert again.ca == listening.ca
        asked = json.dumps({"spec": {"token": issued["status"]["token"]}}).encode()
        reply = await server.transport().request(
            HttpRequest("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=asked)
        )
        assert json.loads(reply.body)["status"]["user"]["username"] == "system:serviceaccount:default:sa"
