"""Tests of `fairlead orphans watch` as a process that SIGTERM stops."""

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
    evidence_config_map = await shell.harness.find("fairlead-orphans", fl.ConfigMap)
    absent = (
        json.loads(evidence_config_map["data"]["evidence.json"])["clusters"].get("project-a", {}).get("absent")
        if evidence_config_map
        else None
    )
    return absent and absent[0]


async def test_watch_deletes_orphans_and_exits_on_sigterm(shell):
    await shell.harness.create_gateway("alive")
    await shell.harness.create_route("kept", parents=["alive"])
    await shell.harness.create_route("orphan")
    async with run_watch(shell, "--grace", "1s"):
        await wait_for(lambda: is_gone(shell, "orphan"))
    assert await shell.harness.find("kept")
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert [json.loads(line)["what"] for line in journal.read_text().splitlines()] == ["deleting", "deleted"]


async def test_restarted_watch_uses_the_evidence_of_the_first_run(shell):
    await shell.harness.create_route("orphan")
    async with run_watch(shell, "--no-leader-elect"):
        first_evidence = await wait_for(lambda: get_evidence(shell))
    assert await shell.harness.find("orphan")
    async with run_watch(shell, "--no-leader-elect", "--grace", "1s"):
        await wait_for(lambda: is_gone(shell, "orphan"))
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert json.loads(journal.read_text().splitlines()[0])["since"] == first_evidence[4][:19] + "Z"


async def test_second_replica_takes_over_when_the_leader_stops(shell):
    async with run_watch(shell, "--grace", "1s") as first_process:
        holder = await wait_for(lambda: get_leader(shell))
        async with run_watch(shell, "--grace", "1s"):
            await shell.harness.create_route("one")
            await wait_for(lambda: is_gone(shell, "one"))
            assert await get_leader(shell) == holder
            first_process.terminate()  # it releases the lease
            await first_process.wait()
            await shell.harness.create_route("two", parents=["other"])
            await wait_for(lambda: is_gone(shell, "two"))
            assert await get_leader(shell) != holder
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    deletion = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(entry["what"], entry["name"]) for entry in deletion if entry["what"] == "deleted"] == [
        ("deleted", "one"),
        ("deleted", "two"),
    ]


async def get_leader(shell):
    lease = await shell.harness.find("fairlead-orphans", Lease)
    return lease and lease.spec.get("holderIdentity")


async def is_gone(shell, name):
    return await shell.harness.find(name) is None
