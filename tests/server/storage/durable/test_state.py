"""Tests that a restart restores the whole state, and that no client receives a change that is not on the disk."""

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
from fairlead.server.storage.durable.data_directory import DataError
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
    parameters = {key: [value] for key, value in query.items()}
    encoded_body = b"" if body is None else json.dumps(body).encode()
    answer = await server.handle(Request(method, path, parameters, {"user-agent": "test"}, encoded_body))
    return answer.status, json.loads(answer.body)


def named(name, **fields):
    return {"metadata": {"name": name}, **fields}


async def read_all(server):
    """Return the responses of all collections by path."""
    paths = [MAPS, DEFINITIONS, "/api/v1/namespaces", "/apis", "/apis/example.com/v1", WIDGETS]
    return {path: (await send(server, "GET", path)) for path in paths}


async def test_restart_restores_all_objects(tmp_path):
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
        assert server.store.version == version  # A restart does not write the initial objects again.
        invalid = {"apiVersion": "example.com/v1", "kind": "Widget", **named("x", spec={"size": "big"})}
        assert (await api.request(HttpRequest("POST", WIDGETS, body=json.dumps(invalid).encode()))).status == 422
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
    response = await server.transport().request(
        HttpRequest("GET", MAPS, query={"watch": "true", "resourceVersion": str(version), "timeoutSeconds": "1"})
    )
    return [json.loads(line) for line in response.body.splitlines()]


def summarize(frame):
    return frame["type"], frame["object"]["metadata"]["name"], frame["object"].get("data")


def test_watch_resumes_after_a_restart(tmp_path):
    async def main():
        with serving(tmp_path / "d", world=virtual.world()) as server:
            await send(server, "POST", MAPS, named("a"))
            version_before = server.store.version
            await send(server, "PUT", f"{MAPS}/a", named("a", data={"k": "1"}))
            await send(server, "POST", MAPS, named("b"))
            await send(server, "DELETE", f"{MAPS}/a")
            before = await frames(server, version_before)
        with serving(tmp_path / "d", world=virtual.world()) as server:
            assert await frames(server, version_before) == before
            assert [summarize(frame) for frame in before] == [
                ("MODIFIED", "a", {"k": "1"}),
                ("ADDED", "b", None),
                ("DELETED", "a", {"k": "1"}),
            ]
            status, page = await send(
                server, "GET", MAPS, resourceVersion=str(version_before), resourceVersionMatch="Exact"
            )
            assert (status, [item["metadata"]["name"] for item in page["items"]]) == (200, ["a"])

    virtual.run(main())


def test_stored_history_has_the_same_limit_as_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("fairlead.server.app.Store", lambda initial: Store(history=10, initial=initial))
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
            compacted_version = table.compacted_version
        rows = sqlite3.connect(tmp_path / "d/state.db")
        (count,) = rows.execute("SELECT count(*) FROM revisions WHERE plural = 'configmaps'").fetchone()
        rows.close()
        assert count <= 23  # twice the history, plus the two objects
        with serving(tmp_path / "d", world=virtual.world()) as server:
            table = server.store.table("", "configmaps")
            assert ([event.version for event in table.events], table.compacted_version) == (expected, compacted_version)
            assert [name for name, _ in table.scan("default")] == ["default/a", "default/b"]
            (error,) = await frames(server, old)
            assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
            assert table.events[0].type == "MODIFIED"
            assert table.events[0].previous is not None

    virtual.run(main())


async def test_responses_wait_until_changes_are_on_the_disk(tmp_path, monkeypatch):
    with serving(tmp_path / "d") as server:
        await send(server, "GET", MAPS)
        database = server._journal._database
        commit, can_commit = database.commit, threading.Event()
        monkeypatch.setattr(database, "commit", lambda *batch: can_commit.wait(10) and commit(*batch))
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
        assert not any(task.done() for task in waiting)
        can_commit.set()
        created, read, listed, frame = await asyncio.gather(*waiting)
        assert (created[0], read[0], len(listed[1]["items"])) == (201, 200, 1)
        assert b'"name":"a"' in frame
        await stream.close()


async def test_concurrent_writes_share_commits(tmp_path, monkeypatch):
    with serving(tmp_path / "d") as server:
        await send(server, "GET", MAPS)
        database = server._journal._database
        commit, sizes = database.commit, []

        def commit_and_count(revisions, compacted):
            sizes.append(len(revisions))
            commit(revisions, compacted)

        monkeypatch.setattr(database, "commit", commit_and_count)
        answers = await asyncio.gather(*(send(server, "POST", MAPS, named(f"a{n}")) for n in range(50)))
        assert {status for status, _ in answers} == {201}
        assert sum(sizes) == 50
        assert len(sizes) <= 3


def limit_size(server, pages):
    server._journal._database._connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_writes_to_a_full_disk_are_rejected_and_undone(tmp_path, caplog):
    with serving(tmp_path / "d", controllers=["gc"]) as server:
        await send(server, "POST", MAPS, named("a", data={"k": "1"}))
        await send(server, "POST", DEFINITIONS, WIDGET)
        before = await read_all(server)
        stream = await server.transport().stream(
            HttpRequest(
                "GET", MAPS, query={"watch": "true", "resourceVersion": before[MAPS][1]["metadata"]["resourceVersion"]}
            )
        )
        watching = asyncio.ensure_future(stream.read())
        await asyncio.sleep(0)
        limit_size(server, 1)  # SQLite then permits no more pages than there are.
        big = {"k": "x" * 100_000}
        other_definition = json.loads(json.dumps(WIDGET).replace("idget", "adget"))
        rejections = await asyncio.gather(
            send(server, "PUT", f"{MAPS}/a", named("a", data=big)),
            send(server, "POST", MAPS, named("b", data=big)),
            send(server, "POST", DEFINITIONS, {**other_definition, "metadata": {"name": "wadgets.example.com"}}),
            send(server, "DELETE", f"{DEFINITIONS}/widgets.example.com"),
        )
        assert {status for status, _ in rejections} == {500}
        assert "database or disk is full" in rejections[0][1]["message"]
        assert "undone and rejected" in caplog.text
        assert await read_all(server) == before
        assert await watching == b""  # The stream ended, because its changes were undone.
        limit_size(server, 1_000_000)
        status, created = await send(server, "POST", MAPS, named("b", data=big))
        assert (status, created["metadata"]["resourceVersion"]) == (201, str(server.store.version))
        now = await read_all(server)
    with serving(tmp_path / "d") as server:
        assert await read_all(server) == now


@contextlib.contextmanager
def small_disk(folder, size):
    """Mount a small file system that a few writes fill."""
    folder.mkdir()
    completed = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "fairlead", str(folder)],
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        pytest.skip(f"a small disk needs root: {completed.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="mount is not installed")
async def test_writes_are_rejected_until_the_disk_has_space_again(tmp_path, caplog):
    with small_disk(tmp_path / "disk", "3m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 1_000_000)
        with serving(disk / "d", controllers=["gc"]) as server:
            stored = []
            while True:
                name = f"a{len(stored)}"
                status, _ = await send(server, "POST", MAPS, named(name, data={"k": "x" * 20_000}))
                if status != 201:
                    break
                stored.append(name)
            assert status == 500
            assert 10 < len(stored) < 200
            status, page = await send(server, "GET", MAPS)
            assert [item["metadata"]["name"] for item in page["items"]] == sorted(stored)
            assert (await send(server, "POST", MAPS, named("still-full", data={"k": "x" * 20_000})))[0] == 500
            ballast.unlink()
            assert (await send(server, "POST", MAPS, named("room")))[0] == 201
        with serving(disk / "d") as server:
            status, page = await send(server, "GET", MAPS)
            assert [item["metadata"]["name"] for item in page["items"]] == sorted([*stored, "room"])


def test_start_on_a_full_disk_fails_with_one_line(tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        (disk / "ballast").write_bytes(b"x" * 40_000)
        assert "disk" in startup_error(disk / "d")


async def test_reads_succeed_while_writes_are_rejected(tmp_path, caplog):
    with serving(tmp_path / "d") as server:
        await send(server, "POST", MAPS, named("a"))
        limit_size(server, 1)
        answers = await asyncio.gather(
            send(server, "POST", MAPS, named("b", data={"k": "x" * 100_000})),
            send(server, "GET", f"{MAPS}/b"),
            send(server, "GET", f"{MAPS}/a"),
        )
        assert [status for status, _ in answers] == [500, 404, 200]


def startup_error(folder):
    with pytest.raises(DataError) as raised:
        Server(data=folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name in ("state.db", "state.db-wal")}


def create_state(folder):
    with serving(folder) as server:
        answers = asyncio.run(send(server, "POST", MAPS, named("a", data={"k": "x" * 20_000})))
    assert answers[0] == 201
    return folder


@pytest.mark.parametrize("damaged_part", ["the header", "the pages", "an object"])
def test_damaged_database_is_rejected_and_not_changed(tmp_path, damaged_part):
    folder = create_state(tmp_path / "d")
    database_bytes = bytearray((folder / "state.db").read_bytes())
    start = {"the header": 0, "the pages": 4096, "an object": database_bytes.index(b"xxxxxxxx")}[damaged_part]
    database_bytes[start : start + 50] = b"y" * 50
    (folder / "state.db").write_bytes(database_bytes)
    before = contents(folder)
    message = startup_error(folder)
    assert "was not changed" in message
    assert "another directory" in message
    assert contents(folder) == before


@pytest.mark.parametrize("size", [0, 50, 4096, 10_000])
def test_truncated_database_is_rejected_and_not_changed(tmp_path, size):
    folder = create_state(tmp_path / "d")
    (folder / "state.db").write_bytes((folder / "state.db").read_bytes()[:size])
    before = contents(folder)
    assert "was not changed" in startup_error(folder)
    assert contents(folder) == before


def test_revision_that_is_not_an_object_is_reported_as_damage(tmp_path):
    folder = create_state(tmp_path / "d")
    rows = sqlite3.connect(folder / "state.db")
    rows.execute("UPDATE revisions SET object = ?", (b"[1",))
    rows.commit()
    rows.close()
    assert "damaged" in startup_error(folder)


def test_changed_secret_is_reported_as_damage(tmp_path):
    with serving(tmp_path / "d") as server:
        server.load_secret("key", lambda: b"made once")
    database_bytes = (tmp_path / "d/state.db").read_bytes()
    (tmp_path / "d/state.db").write_bytes(database_bytes.replace(b"made once", b"made oncf"))
    assert "secret 'key'" in startup_error(tmp_path / "d")


def test_database_of_another_program_is_rejected_and_not_changed(tmp_path):
    (tmp_path / "d").mkdir(mode=0o700)
    rows = sqlite3.connect(tmp_path / "d/state.db")
    rows.execute("CREATE TABLE theirs (x)")
    rows.commit()
    rows.close()
    before = contents(tmp_path / "d")
    assert "not a database of fairlead" in startup_error(tmp_path / "d")
    assert contents(tmp_path / "d") == before


def test_newer_format_is_rejected_and_not_changed(tmp_path):
    folder = create_state(tmp_path / "d")
    rows = sqlite3.connect(folder / "state.db")
    rows.execute("PRAGMA user_version = 7")
    rows.execute("PRAGMA journal_mode = DELETE")
    rows.close()
    before = contents(folder)
    assert "format 7" in startup_error(folder)
    assert contents(folder) == before


def test_second_server_is_rejected_until_the_first_is_closed(tmp_path):
    with serving(tmp_path / "d"):
        assert "another server uses" in startup_error(tmp_path / "d")
    with serving(tmp_path / "d"):
        pass


def test_directory_is_accessible_to_its_owner_only(tmp_path):
    with serving(tmp_path / "d"):
        assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "d/state.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "d").chmod(0o750)
    assert f"chmod 700 {tmp_path / 'd'}" in startup_error(tmp_path / "d")


def test_symbolic_links_are_rejected(tmp_path):
    folder = create_state(tmp_path / "d")
    (tmp_path / "link").symlink_to(folder)
    assert "is a symbolic link" in startup_error(tmp_path / "link")
    (folder / "state.db").rename(tmp_path / "moved")
    (folder / "state.db").symlink_to(tmp_path / "moved")
    assert "is not a regular file" in startup_error(folder)
    assert "cannot create" in startup_error(tmp_path / "no" / "such")
    (tmp_path / "file").write_text("")
    assert "not a directory" in startup_error(tmp_path / "file")


def test_controllers_retry_undone_writes_without_blocking_reads(tmp_path, monkeypatch, caplog):
    async def main():
        with serving(tmp_path / "d", world=virtual.world(), controllers=["gc"]) as server:
            _, owner = await send(server, "POST", MAPS, named("owner"))
            uid = owner["metadata"]["uid"]
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
            child = {"metadata": {"name": "child", "ownerReferences": [reference]}}
            assert (await send(server, "POST", MAPS, child))[0] == 201
            server.respond(Request("DELETE", f"{MAPS}/owner", {}, {}))  # No client has seen it yet.
            database = server._journal._database
            with monkeypatch.context() as broken:

                def fail(*batch):
                    raise sqlite3.OperationalError("database or disk is full")

                broken.setattr(database, "commit", fail)
                for _ in range(3):
                    assert (await send(server, "GET", f"{MAPS}/owner"))[0] == 200
                    assert (await send(server, "GET", f"{MAPS}/child"))[0] == 200
                    assert (await send(server, "DELETE", f"{MAPS}/owner"))[0] == 500
                    await asyncio.sleep(5)
            assert (await send(server, "DELETE", f"{MAPS}/owner"))[0] == 200
            await asyncio.sleep(5)
            assert (await send(server, "GET", f"{MAPS}/child"))[0] == 404

    virtual.run(main())


async def test_restart_keeps_the_ca_and_issued_tokens_valid(tmp_path):
    path = "/api/v1/namespaces/default/serviceaccounts"
    with serving(tmp_path / "d", tokens=["t"], authorization="RBAC") as server:
        api = server.transport()
        await api.request(HttpRequest("POST", path, body=b'{"metadata":{"name":"sa"}}'))
        issued = json.loads((await api.request(HttpRequest("POST", f"{path}/sa/token", body=b'{"spec":{}}'))).body)
        listening = await server.listen()
        await listening.close()
    with serving(tmp_path / "d", tokens=["t"], authorization="RBAC") as server:
        second_listener = await server.listen()
        await second_listener.close()
        assert second_listener.ca == listening.ca
        parameters = json.dumps({"spec": {"token": issued["status"]["token"]}}).encode()
        response = await server.transport().request(
            HttpRequest("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=parameters)
        )
        assert json.loads(response.body)["status"]["user"]["username"] == "system:serviceaccount:default:sa"
