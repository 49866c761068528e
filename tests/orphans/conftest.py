"""Downstream is each server in turn; upstreams are embedded ones. Time is set by hand. Or: servers behind sockets."""

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
async def bed(api):
    bed = fleets.Bed(api.transport(), api.namespace, fleets.hand_world())
    await bed.start("project-a")
    yield bed
    await bed.clean()


class Shell:
    """A folder with a kubeconfig, and the command in it."""

    def __init__(self, bed, folder):
        self.bed, self.folder = bed, folder
        self.plan = folder / "plan.json"
        self.where = ("--kubeconfig", str(folder / "config"), "--downstream", "edge", "--upstream", "project-a=a")
        self.env = {**os.environ, "COLUMNS": "200", "HOME": str(folder), "XDG_STATE_HOME": str(folder)}

    async def __call__(self, *args, where=None):
        """(status, output, errors) of the command, without a terminal. In this process, in a thread of its own."""
        out, errors = io.StringIO(), io.StringIO()

        def run():
            leaving = pytest.raises(SystemExit)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), leaving as left:
                main.main(["orphans", *args, *(self.where if where is None else where)])
            return left.value.code

        with mock.patch.dict(os.environ, self.env), mock.patch("sys.stdin", io.StringIO("y\n")):
            status = await asyncio.to_thread(run)
        said = out.getvalue() + errors.getvalue()
        assert "Traceback" not in said
        assert TOKEN not in said
        return status, out.getvalue(), errors.getvalue()

    def command(self, *args):
        return [sys.executable, "-m", "fairlead", "orphans", *args, *self.where]

    def edit(self, **fields):
        plan = json.loads(self.plan.read_text())
        plan["items"] = [{**plan["items"][0], **fields}]
        self.plan.write_text(json.dumps(plan))

    @property
    def evidence(self):
        (found,) = (self.folder / "fairlead").glob("orphans-*.json")
        return found


@pytest.fixture
async def shell(tmp_path):
    world = World()
    servers = {name: Server(world, tokens=[TOKEN]) for name in ("edge", "a")}
    listening = {name: await server.listen() for name, server in servers.items()}
    bed = fleets.Bed(servers["edge"].transport(), "default", world)
    await bed.start()
    await bed.upstream("project-a", servers["a"].transport())
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
    yield Shell(bed, tmp_path)
    for at in listening.values():
        await at.close()
