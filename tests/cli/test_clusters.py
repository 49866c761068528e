"""Tests of `fairlead run` inside a pod, and with a second cluster."""

import asyncio
import json
import os
import sys
import textwrap
from urllib.parse import urlsplit

import pytest

import fairlead as fl
from fairlead.api.builtin import Namespace
from fairlead.api.files import write_private
from fairlead.client.client import Client
from fairlead.server.app import Server

GREETER = """
    import fairlead as fl
    op = fl.Operator("podded")

    @op.reconcile(fl.select(fl.ConfigMap, labels="greet"), owns=[fl.Secret])
    async def greet(obj, ctx):
        await ctx.apply(fl.Secret(obj.name, data={"for": "aGVsbG8="}))
"""
# The fairlead command with another mount path of the service account.
IN_A_POD = """
import pathlib, sys
from fairlead.client import incluster
incluster.MOUNT = pathlib.Path(sys.argv.pop(1))
from fairlead.__main__ import main
main()
"""
MIRROR = """
    import fairlead as fl
    op = fl.Operator("mirror")

    @op.reconcile(fl.select(fl.ConfigMap, labels="mirror"), watches={fl.select(fl.Secret, cluster="edge"): None})
    async def mirror(obj, ctx):
        await ctx.cluster("edge").apply(fl.Secret(obj.name, namespace="default", data=obj["data"]))
"""


async def run(*command, **env):
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *map(str, command), env={**inherited, **env}, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        _, output = await process.communicate()
    return process.returncode, output.decode()


def labelled(name, namespace, label, **fields):
    obj = fl.ConfigMap(name, namespace, **fields)
    obj["metadata"]["labels"] = {label: "yes"}
    return obj


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(textwrap.dedent(text))
        return tmp_path / name

    return write


async def test_run_in_a_pod_uses_its_service_account_namespace_and_lease(api, write, tmp_path):
    client = Client(api.transport(), fl.World())
    other_namespace = f"{api.namespace}-other"
    await client.create(Namespace(other_namespace))
    for namespace in (api.namespace, other_namespace):
        await client.create(labelled("hello", namespace, "greet"))
    mount = tmp_path / "serviceaccount"
    mount.mkdir()
    (mount / "token").write_text(f"{api.token}\n")
    (mount / "ca.crt").write_bytes(api.ca_data)
    (mount / "namespace").write_text(api.namespace)
    address = urlsplit(api.url)
    code, output = await run(
        *("-c", IN_A_POD, mount, "run", write("podded.py", GREETER), "--once"),
        KUBERNETES_SERVICE_HOST=address.hostname,
        KUBERNETES_SERVICE_PORT=str(address.port),
        HOME=str(tmp_path),
    )
    assert code == 0, output
    assert f"it holds lease {api.namespace}/podded" in output
    assert [secret.name for secret in (await client.list(fl.Secret, api.namespace)).items] == ["hello"]
    assert (await client.list(fl.Secret, other_namespace)).items == []
    lease = await client.get(fl.Lease, "podded", api.namespace)
    assert lease.spec["holderIdentity"] == "", "the lease must be released at the end"


async def test_other_cluster_is_selected_by_its_context(api, write, tmp_path):
    edge = Server(fl.World(), tokens=["edge"])
    listening = await edge.listen(tls=False)
    try:
        client = Client(api.transport(), fl.World())
        await client.create(labelled("hello", api.namespace, "mirror", data={"for": "aGVsbG8="}))
        (tmp_path / "ca").write_bytes(api.ca_data)
        config = {
            "clusters": [
                {"name": "home", "cluster": {"server": api.url, "certificate-authority": "ca"}},
                {"name": "edge", "cluster": {"server": listening.url}},
            ],
            "users": [
                {"name": "home", "user": {"token": api.token}},
                {"name": "edge", "user": {"token": "edge"}},
            ],
            "contexts": [
                {"name": "at-home", "context": {"cluster": "home", "user": "home", "namespace": api.namespace}},
                {"name": "at-edge", "context": {"cluster": "edge", "user": "edge"}},
            ],
            "current-context": "at-home",
        }
        write_private(tmp_path / "kubeconfig", json.dumps(config))
        once = ("-m", "fairlead", "run", write("mirror.py", MIRROR), "--kubeconfig", tmp_path / "kubeconfig", "--once")
        code, output = await run(*once, "--cluster", "edge=at-edge", "-n", "default", "-n", api.namespace)
        assert code == 0, output
        copy = await Client(edge.transport(), fl.World()).get(fl.Secret, "hello", "default")
        assert copy["data"] == {"for": "aGVsbG8="}
        assert "ownerReferences" not in copy.metadata
        code, output = await run(*once)
        assert code == 2
        assert "mirror watches a cluster 'edge': add --cluster edge=CONTEXT" in output
        code, output = await run(*once, "--cluster", "edge=nowhere")
        assert code == 2
        assert "nowhere" in output
        assert "Traceback" not in output
    finally:
        await listening.close()
