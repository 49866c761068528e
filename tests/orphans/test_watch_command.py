"""`fairlead orphans watch` as people run it: processes of their own, told to end by SIGTERM."""

import asyncio
import contextlib
import json
import subprocess

import fairlead as fl

Lease = fl.kind("coordination.k8s.io/v1", "Lease")


# The command


@contextlib.asynccontextmanager
async def at_work(shell, *args):
    """`fairlead orphans watch` as a process of its own, until the block ends; then SIGTERM, and status 0."""
    command = shell.command("watch", "--log-format", "json", *args)
    run = await asyncio.create_subprocess_exec(*command, env=shell.env, stderr=subprocess.PIPE)
    try:
        yield run
    finally:
        with contextlib.suppress(ProcessLookupError):
            run.terminate()
        _, said = await run.communicate()
        assert b"Traceback" not in said
    assert run.returncode == 0, said


async def until(what):
    async with asyncio.timeout(60):
        while not (found := await what()):  # noqa: ASYNC110 - another process brings it about
            await asyncio.sleep(0.05)
    return found


async def evidence_of(shell):
    held = await shell.bed.there("fairlead-orphans", fl.ConfigMap)
    absent = json.loads(held["data"]["evidence.json"])["clusters"].get("project-a", {}).get("absent") if held else None
    return absent and absent[0]


async def test_watch_deletes_orphans_and_exits_on_sigterm(shell):
    await shell.bed.gateway("alive")
    await shell.bed.route("kept", parents=["alive"])
    await shell.bed.route("orphan")
    async with at_work(shell, "--grace", "1s"):
        await until(lambda: gone(shell, "orphan"))
    assert await shell.bed.there("kept")
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert [json.loads(line)["what"] for line in journal.read_text().splitlines()] == ["deleting", "deleted"]


async def test_restarted_watch_uses_the_evidence_of_the_first_run(shell):
    await shell.bed.route("orphan")
    async with at_work(shell, "--no-leader-elect"):
        seen = await until(lambda: evidence_of(shell))
    assert await shell.bed.there("orphan")
    async with at_work(shell, "--no-leader-elect", "--grace", "1s"):
        await until(lambda: gone(shell, "orphan"))
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert json.loads(journal.read_text().splitlines()[0])["since"] == seen[4][:19] + "Z"


async def test_second_replica_takes_over_when_the_leader_stops(shell):
    async with at_work(shell, "--grace", "1s") as first:
        holder = await until(lambda: leader(shell))
        async with at_work(shell, "--grace", "1s"):
            await shell.bed.route("one")
            await until(lambda: gone(shell, "one"))
            assert await leader(shell) == holder
            first.terminate()  # it gives the lease up
            await first.wait()
            await shell.bed.route("two", parents=["other"])
            await until(lambda: gone(shell, "two"))
            assert await leader(shell) != holder
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    done = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(entry["what"], entry["name"]) for entry in done if entry["what"] == "deleted"] == [
        ("deleted", "one"),
        ("deleted", "two"),
    ]


async def leader(shell):
    lease = await shell.bed.there("fairlead-orphans", Lease)
    return lease and lease.spec.get("holderIdentity")


async def gone(shell, name):
    return await shell.bed.there(name) is None
