"""Fixtures: `harness` has a manual clock and runs on each downstream server, and `shell` runs the command.

The upstream servers are embedded servers.
"""

import asyncio
import base64
import contextlib
import io
import json
import os
import sys
from unittest import mock

import fleets
import pytest

from fairlead.api.world import World
from fairlead.cli import main
from fairlead.server.app import Server

TOKEN = "a-token-that-is-never-shown"


@pytest.fixture
async def harness(api):
    harness = fleets.FleetHarness(api.transport(), api.namespace, fleets.manual_world())
    await harness.start("project-a")
    yield harness
    await harness.clean()


class Shell:
    """A folder with a kubeconfig, and the `fairlead orphans` command that uses it."""

    def __init__(self, harness, folder):
        self.harness, self.folder = harness, folder
        self.plan = folder / "plan.json"
        self.cluster_arguments = (
            "--kubeconfig",
            str(folder / "config"),
            "--downstream",
            "edge",
            "--upstream",
            "project-a=a",
        )
        self.env = {**os.environ, "COLUMNS": "200", "HOME": str(folder), "XDG_STATE_HOME": str(folder)}

    async def __call__(self, *args, cluster_arguments=None):
        """Run the command in a thread without a terminal. Return (exit code, stdout, stderr)."""
        stdout, errors = io.StringIO(), io.StringIO()

        def run():
            with (
                contextlib.redirect_stdout(stdout),
                contextlib.redirect_stderr(errors),
                pytest.raises(SystemExit) as exit_,
            ):
                main.main(
                    ["orphans", *args, *(self.cluster_arguments if cluster_arguments is None else cluster_arguments)]
                )
            return exit_.value.code

        with mock.patch.dict(os.environ, self.env), mock.patch("sys.stdin", io.StringIO("y\n")):
            status = await asyncio.to_thread(run)
        output = stdout.getvalue() + errors.getvalue()
        assert "Traceback" not in output
        assert TOKEN not in output
        return status, stdout.getvalue(), errors.getvalue()

    def command(self, *args):
        return [sys.executable, "-m", "fairlead", "orphans", *args, *self.cluster_arguments]

    def edit(self, **fields):
        plan = json.loads(self.plan.read_text())
        plan["items"] = [{**plan["items"][0], **fields}]
        self.plan.write_text(json.dumps(plan))

    @property
    def evidence(self):
        (path,) = (self.folder / "fairlead").glob("orphans-*.json")
        return path


@pytest.fixture
async def shell(tmp_path):
    world = World()
    servers = {name: Server(world, tokens=[TOKEN]) for name in ("edge", "a")}
    listening = {name: await server.listen() for name, server in servers.items()}
    harness = fleets.FleetHarness(servers["edge"].transport(), "default", world)
    await harness.start()
    await harness.set_upstream("project-a", servers["a"].transport())
    clusters = [
        {"name": n, "cluster": {"server": at.url, "certificate-authority-data": base64.b64encode(at.ca).decode()}}
        for n, at in listening.items()
    ]
    config = {
        "kind": "Config",
        "clusters": clusters,
        "users": [{"name": "me", "user": {"token": TOKEN}}],
        "contexts": [{"name": n, "context": {"cluster": n, "user": "me"}} for n in listening],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    yield Shell(harness, tmp_path)
    for at in listening.values():
        await at.close()
