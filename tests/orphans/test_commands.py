"""`fairlead orphans`, as people type it, on servers behind sockets."""

import asyncio
import base64
import json
import os
import subprocess
import sys

import fleets
import pytest

from fairlead.api.world import World
from fairlead.orphans.loading import RulesError, load
from fairlead.server.app import Server

TOKEN = "a-token-that-is-never-shown"


class Shell:
    def __init__(self, bed, folder):
        self.bed, self.folder = bed, folder
        self.plan = folder / "plan.json"
        self.where = ("--kubeconfig", str(folder / "config"), "--downstream", "edge", "--upstream", "project-a=a")

    async def __call__(self, *args, where=None, **env):
        """(status, output, errors) of the command, with a home of its own and no terminal."""
        command = [sys.executable, "-m", "fairlead", "orphans", *args, *(self.where if where is None else where)]
        env = {**os.environ, "COLUMNS": "200", "HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder), **env}
        run = subprocess.run
        got = await asyncio.to_thread(run, command, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
        assert "Traceback" not in got.stderr
        assert TOKEN not in got.stdout + got.stderr
        return got.returncode, got.stdout, got.stderr

    def edit(self, **fields):
        plan = json.loads(self.plan.read_text())
        plan["items"] = [{**plan["items"][0], **fields}]
        self.plan.write_text(json.dumps(plan))


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


async def test_plan_then_apply_deletes_what_was_planned(shell):
    await shell.bed.gateway()
    await shell.bed.route("kept")
    await shell.bed.route("orphan", parents=["missing"])
    status, out, _ = await shell("plan", "--grace", "0s", "-o", str(shell.plan))
    assert status == 0
    assert "2 selected: 1 to delete, 0 in their grace, 1 kept, 0 not judged" in out
    assert "Gateway default/missing is gone from project-a" in out
    status, _, errors = await shell("apply", str(shell.plan), "--grace", "0s")
    assert (status, "say --yes" in errors) == (1, True)
    assert await shell.bed.there("orphan")
    status, out, _ = await shell("apply", str(shell.plan), "--grace", "0s", "--yes")
    assert (status, "1 deleted" in out) == (0, True)
    assert await shell.bed.there("orphan") is None
    assert await shell.bed.there("kept")
    (journal,) = (shell.folder / "fairlead").glob("*.journal")
    assert [json.loads(line)["what"] for line in journal.read_text().splitlines()] == ["deleting", "deleted"]


@pytest.mark.parametrize("edited", ["name", "uid", "kind", "rule", "state", "grace"])
async def test_a_plan_edited_by_hand_deletes_nothing_that_the_rule_would_not(shell, edited):
    await shell.bed.gateway()
    kept = await shell.bed.route("kept")
    orphan = await shell.bed.route("orphan", parents=["missing"])
    assert (await shell("plan", "--grace", "0s", "-o", str(shell.plan)))[0] == 0
    edits = {
        "name": {"name": "kept"},
        "uid": {"uid": kept.uid},
        "kind": {"kind": "ConfigMap", "apiVersion": "v1"},
        "rule": {"rule": "made-up"},
        "state": {"name": "kept", "uid": kept.uid, "state": "orphan", "evidence": ["surely gone"]},
        "grace": {"since": "2020-01-01T00:00:00Z", "due": "2020-01-01T00:05:00Z"},
    }
    shell.edit(**edits[edited])
    grace = () if edited == "grace" else ("--grace", "0s")  # without it, the rule's own five minutes hold
    status, out, _ = await shell("apply", str(shell.plan), *grace, "--yes")
    assert (status, "left alone" in out) == (1, True)
    assert (await shell.bed.there("kept")).uid == kept.uid
    assert (await shell.bed.there("orphan")).uid == orphan.uid


async def test_the_grace_is_counted_from_the_first_plan_and_told(shell):
    await shell.bed.route()
    status, out, _ = await shell("plan", "-o", "-")
    assert status == 0
    (item,) = json.loads(out)["items"]
    assert (item["state"], item["rule"]) == ("waiting", "httproute-gateway")
    again = json.loads((await shell("plan", "-o", "-"))[1])["items"][0]
    assert again["since"] == item["since"]


async def test_what_cannot_be_judged_is_status_1_and_wrong_use_is_2(shell):
    await shell.bed.route(cluster="cluster-unheard-of")
    status, out, _ = await shell("plan")
    assert (status, "name it with --upstream or --retired" in out) == (1, True)
    kubeconfig = shell.where[:2]
    for wrong in (
        ("plan", "--downstream", "edge"),
        ("plan", "--downstream", "edge", "--upstream", "project-a"),
        ("plan", "--downstream", "nowhere", "--upstream", "project-a=a"),
        ("plan", "--downstream", "edge", "--upstream", "project-a=a", "--retired", "project-a"),
        ("plan", "--downstream", "edge", "--upstream", "project-a=a", "--grace", "soon"),
        ("plan", "--downstream", "edge", "--upstream", "project-a=a", "--max", "200%"),
        ("apply", str(shell.folder / "config"), "--downstream", "edge", "--upstream", "project-a=a"),
    ):
        status, _, errors = await shell(*wrong, where=kubeconfig)
        assert (status, len(errors.strip().splitlines())) == (2, 1), (wrong, errors)


async def test_text_of_others_cannot_move_the_cursor(shell):
    rules = shell.folder / "rules.py"
    rules.write_text(
        "import fairlead as fl\nfrom fairlead.orphans.rules import Rule\nfrom fairlead.orphans.identity import *\n"
        "def parents(obj, identity):\n    raise Unreadable('says \\x1b[2J')\n"
        "rules = [Rule('mine', fl.kind('gateway.networking.k8s.io/v1', 'HTTPRoute'), parents)]\n"
    )
    await shell.bed.route()
    status, out, errors = await shell("plan", "--rules", str(rules))
    assert (status, "says" in out) == (1, True)
    assert "\x1b" not in out + errors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: 3", "has no list `rules`"),
        ("rules: [{use: nothing}]", "no shipped rule 'nothing'"),
        ("rules: [{name: x}]", "has no collect"),
        ("rules: [{use: anchor, gracee: 1m}]", "'gracee' means nothing here"),
        ("rules: [{use: anchor, parents: []}]", "names no parents"),
        ("rules: [{use: anchor}, {use: anchor}]", "two rules are called anchor"),
        ("rules: [{use: anchor, enabled: false}]", "holds no rule that is on"),
        ("{", "not YAML at line"),
    ],
)
def test_a_rules_file_that_is_wrong_says_where(tmp_path, text, said):
    (tmp_path / "rules.yaml").write_text(text)
    with pytest.raises(RulesError, match=said.replace("`", ".")):
        load(tmp_path / "rules.yaml")
