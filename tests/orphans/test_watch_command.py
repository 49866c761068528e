"""`fairlead orphans watch` as a separate process that SIGTERM stops."""

import asyncio
import contextlib
import json
import subprocess

import fairlead as fl

Lease = fl.kind("coordination.k8s.io/v1", "Lease")


@contextlib.asynccontextmanager
async def run_watch(shell, *args):
    """Run `fairlead orphans watch` as a process. Stop it by SIGTERM after the block and expect exit code 0."""
    command = shell.command("watch", "--log-format", "json", *args)
    run = await asyncio.create_subprocess_exec(*command, env=shell.env, stderr=subprocess.PIPE)
    try:
        yield run
    finally:
        with contextlib.suppress(ProcessLookupError):
            run.terminate()
        _, output = await run.communicate()
        assert b"Traceback" not in output
    assert run.returncode == 0, output


async def wait_for(condition):
    async with asyncio.timeout(60):
        while not (result := await condition()):  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(0.05)
    return result


async def get_evidence(shell):
    stored = await shell.bed.find("fairlead-orphans", fl.ConfigMap)
    absent = (
        json.loads(stored["data"]["evidence.json"])["clusters"].get("project-a", {}).get("absent") if stored else None
    )
    return absent and absent[0]


async def test_watch_deletes_orphans_and_exits_on_sigterm(shell):
    await shell.bed.create_gateway("alive")
    await shell.bed.create_route("kept", parents=["alive"])
    await shell.bed.create_route("orphan")
    async with run_watch(shell, "--grace", "1s"):
        await wait_for(lambda: is_gone(shell, "orphan"))
    assert await shell.bed.find("kept")
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert [json.loads(line)["what"] for line in journal.read_text().splitlines()] == ["deleting", "deleted"]


async def test_restarted_watch_uses_the_evidence_of_the_first_run(shell):
    await shell.bed.create_route("orphan")
    async with run_watch(shell, "--no-leader-elect"):
        seen = await wait_for(lambda: get_evidence(shell))
    assert await shell.bed.find("orphan")
    async with run_watch(shell, "--no-leader-elect", "--grace", "1s"):
        await wait_for(lambda: is_gone(shell, "orphan"))
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert json.loads(journal.read_text().splitlines()[0])["since"] == seen[4][:19] + "Z"


async def test_second_replica_takes_over_when_the_leader_stops(shell):
    async with run_watch(shell, "--grace", "1s") as first:
        holder = await wait_for(lambda: get_leader(shell))
        async with run_watch(shell, "--grace", "1s"):
            await shell.bed.create_route("one")
            await wait_for(lambda: is_gone(shell, "one"))
            assert await get_leader(shell) == holder
            first.terminate()  # it releases the lease
            await first.wait()
            await shell.bed.create_route("two", parents=["other"])
            await wait_for(lambda: is_gone(shell, "two"))
            assert await get_leader(shell) != holder
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    done = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(entry["what"], entry["name"]) for entry in done if entry["what"] == "deleted"] == [
        ("deleted", "one"),
        ("deleted", "two"),
    ]


async def get_leader(shell):
    lease = await shell.bed.find("fairlead-orphans", Lease)
    return lease and lease.spec.get("holderIdentity")


async def is_gone(shell, name):
    return await shell.bed.find(name) is None
