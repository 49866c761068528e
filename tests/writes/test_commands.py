"""Tests of the `fairlead blame`, `fairlead migrate` and `fairlead finalizers` commands on a server."""

import asyncio
import base64
import json
import sys
from types import SimpleNamespace

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.builtin import Secret
from fairlead.tools.blame import blame, fights
from fairlead.writes import apply

WIDGETS = "widgets.writes.fairlead.test"  # The full name: other tests leave other widgets on a shared server.


@pytest.fixture
def run_fairlead(api, env, tmp_path):
    ca = base64.b64encode(api.ca_data).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": api.url, "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": api.token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": api.namespace}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))

    async def run(*args):
        command = [sys.executable, "-m", "fairlead", *args, "--kubeconfig", str(path)]
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(*command, **pipes)
        out, err = await process.communicate()
        return SimpleNamespace(returncode=process.returncode, stdout=out.decode(), stderr=err.decode())

    return run


async def test_blame_names_the_owner_of_each_field(env, run_fairlead):
    applied = await apply(env.writer, WIDGET("w", env.namespace, spec={"listeners": [{"name": "a", "port": 1}]}))
    await env.merge_patch(applied, {"spec": {"note": "theirs: \x1b[31m", "lines": ["x"]}})
    for kind_name in (WIDGETS, "widgets.v1.writes.fairlead.test"):
        process = await run_fairlead("blame", kind_name, "w")
        assert process.returncode == 0, process.stderr
        lines = {line.split("#")[0].strip(): line.partition("# ")[2] for line in process.stdout.splitlines()}
        assert lines["port: 1"].startswith(f"{MANAGER} (Apply, ")
        assert lines["lines:"].startswith("someone (Update, ")
    assert "\x1b" not in process.stdout
    assert "managedFields" not in process.stdout


@pytest.mark.only("embedded", reason="earlier tests left their own widgets on the real server")
async def test_kind_is_accepted_by_each_of_its_names(env, run_fairlead):
    await apply(env.writer, WIDGET("w", env.namespace, spec={"size": 1}))
    for kind_name in ("Widget", "widget", "widgets", "widgets.writes.fairlead.test", "widgets.v1.writes.fairlead.test"):
        process = await run_fairlead("blame", kind_name, "w")
        assert (process.returncode, process.stderr) == (0, "")
        assert "size: 1" in process.stdout


async def test_blame_reports_fights(env, run_fairlead):
    await env.foreign_client.create(WIDGET("w", env.namespace, spec={"size": 1}), field_manager=MANAGER)
    await apply(env.writer, WIDGET("w", env.namespace, spec={"size": 1}), adopt=True)
    response = json.loads((await run_fairlead("blame", WIDGETS, "w", "-o", "json")).stdout)
    [fight] = response["fights"]
    assert fight["fields"] == [".spec.size"]
    assert "migrate" in fight["why"]
    [size] = [field for field in response["fields"] if field["path"] == ".spec.size"]
    assert {owner["operation"] for owner in size["owners"]} == {"Apply", "Update"}


def managed(manager, operation, fields, subresource=""):
    return {"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields}


def owners_by_line(obj):
    return {line.text.strip(): [owner.manager for owner in line.owners] for line in blame(obj)}


def test_blame_lists_owners_of_keys_beside_the_owner_of_the_map():
    """Tests managed fields after a migration of one key: the old entry still owns the map."""
    entries = [managed("new", "Apply", {"f:data": {"f:a": {}}}), managed("old", "Update", {"f:data": {}})]
    owner_by_line = owners_by_line({"metadata": {"managedFields": entries}, "data": {"a": "1", "b": "2"}})
    assert (owner_by_line['a: "1"'], owner_by_line['b: "2"']) == (["new"], [])
    atomic_entries = [managed("new", "Apply", {"f:data": {}}), managed("old", "Update", {"f:data": {}})]
    assert owners_by_line({"metadata": {"managedFields": atomic_entries}, "data": {"a": "1"}})["data:"] == [
        "new",
        "old",
    ]


def test_blame_reports_fights_through_a_subresource():
    replicas = {"f:spec": {"f:replicas": {}}}
    entries = [managed("ours", "Apply", replicas), managed("scaler", "Update", replicas, "scale")]
    [fight] = fights({"metadata": {"managedFields": entries}, "spec": {"replicas": 1}})
    assert (fight.fields, "both own it" in fight.why) == ((".spec.replicas",), True)


async def test_blame_reports_managers_that_apply_string_data(env, run_fairlead):
    secret = Secret("s", env.namespace, stringData={"password": "hunter2"})
    await env.foreign_client.apply(secret, field_manager="naive")
    [fight] = json.loads((await run_fairlead("blame", "secret", "s", "-o", "json")).stdout)["fights"]
    assert fight["fields"] == [".stringData.password"]
    assert "apply data" in fight["why"]


async def test_blame_does_not_show_secrets(env, run_fairlead):
    secret = Secret("s", env.namespace, stringData={"password": "hunter2"})
    secret["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": '{"password":"hunter2"}'}
    await env.foreign_client.create(secret)
    for output in ("text", "json"):
        process = await run_fairlead("blame", "secret", "s", "-o", output)
        assert "password" in process.stdout
        assert "hunter2" not in process.stdout
        assert base64.b64encode(b"hunter2").decode() not in process.stdout


async def test_missing_object_is_reported_in_one_line(env, run_fairlead):
    cases = {
        (WIDGETS, "none"): "there is no Widget none",
        ("nonsense", "x"): "no kind 'nonsense'",
        (WIDGETS, ""): "'' is not the name of a Widget",
        (WIDGETS, "a/b"): "'a/b' is not the name of a Widget",
    }
    for args, message in cases.items():
        process = await run_fairlead("blame", *args)
        assert (process.returncode, process.stdout) == (2, "")
        assert message in process.stderr
        assert len(process.stderr.splitlines()) == 1


async def test_migrate_moves_a_fleet_and_a_second_run_has_nothing_to_do(env, run_fairlead):
    for number in range(12):
        await env.foreign_client.create(
            WIDGET(f"w{number}", env.namespace, spec={"note": "x", "size": number}), field_manager="old"
        )
    await env.widget("theirs", spec={"note": "x"})
    args = (
        "migrate",
        WIDGETS,
        "--from-manager",
        "old",
        "--to",
        MANAGER,
        "--field",
        "spec.note",
        "-n",
        env.namespace,
    )
    planned = await run_fairlead(*args, "--dry-run")
    assert "12 would move, 1 had nothing to move, 0 failed" in planned.stdout, planned.stderr
    process = await run_fairlead(*args)
    assert f"Widget {env.namespace}/w3: .spec.note" in process.stdout
    assert "12 moved, 1 had nothing to move, 0 failed" in process.stdout
    assert "0 moved, 13 had nothing to move, 0 failed" in (await run_fairlead(*args)).stdout
    after = await apply(env.writer, WIDGET("w3", env.namespace, spec={"size": 3}))
    assert after.spec == {"size": 3}


async def test_migrate_lists_existing_managers_if_none_matches(env, run_fairlead):
    await env.widget("w", spec={"note": "x"})
    args = ("--field", "spec.note", "-n", env.namespace)
    process = await run_fairlead("migrate", WIDGETS, "--from-manager", "makre", *args)
    assert (process.returncode, process.stdout) == (0, "0 moved, 1 had nothing to move, 0 failed\n")
    assert process.stderr == "no object has an Update entry of makre; there are: maker (1)\n"


async def test_migrate_rejects_an_invalid_target_manager_in_one_line(run_fairlead):
    for args in (("--from-manager", "old", "--to", "kubectl"), ("--from-manager", "kubectl")):
        process = await run_fairlead("migrate", WIDGETS, *args, "--field", "spec.note")
        assert process.returncode == 2
        assert "--to: the field manager 'kubectl' is special to servers" in process.stderr
        assert "Traceback" not in process.stderr


async def test_migrate_reports_a_forbidden_list_in_one_line(env, run_fairlead):
    args = ("--from-manager", "old", "--to", MANAGER, "--field", "spec.note", "-n", "No_Such.Namespace/..")
    process = await run_fairlead("migrate", WIDGETS, *args)
    assert process.returncode == 1
    assert "list of widgets: " in process.stderr
    assert "Traceback" not in process.stderr


async def test_release_removes_one_finalizer_from_every_object(env, run_fairlead):
    for name, finalizers in {"a": ["x.y/ours", "x.y/theirs"], "b": ["x.y/ours"], "c": ["x.y/theirs"]}.items():
        applied = await env.widget(name)
        await env.merge_patch(applied, {"metadata": {"finalizers": finalizers}})
    process = await run_fairlead("finalizers", "remove", WIDGETS, "--finalizer", "x.y/ours", "-n", env.namespace)
    assert process.stdout == "removed x.y/ours from 2 widgets\n", process.stderr
    remaining_finalizers = {
        obj.name: obj.finalizers for obj in (await env.foreign_client.list(WIDGET, env.namespace)).items
    }
    assert remaining_finalizers == {"a": ["x.y/theirs"], "b": [], "c": ["x.y/theirs"]}
    process = await run_fairlead("finalizers", "remove", WIDGETS, "--finalizer", "x.y/ours", "-n", "..")
    assert (process.returncode != 0, "Traceback" in process.stderr) == (True, False)
