"""kubectl's typed commands send protobuf and have no other way."""

import asyncio
import os
import shutil

import pytest

from fairlead.cli.serve import kubeconfig_text, write_private
from fairlead.server.app import Server
from fairlead.testing import real

KUBECTL = real.find("kubectl") or shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not there: put one in the PATH, or run make real")


async def test_typed_commands_of_kubectl_are_understood(tmp_path):
    listening = await Server(tokens=["t"]).listen()
    write_private(tmp_path / "config", kubeconfig_text(listening.url, "t", listening.ca))

    async def kubectl(*words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            str(KUBECTL), "--kubeconfig", str(tmp_path / "config"), "--cache-dir", str(tmp_path / "cache"), *words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "HOME": str(tmp_path)},
        )  # fmt: skip
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode()

    try:
        created = await kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
        assert created == "role.rbac.authorization.k8s.io/reader created\n"
        assert await kubectl("create", "configmap", "c", "--from-literal=k=v") == "configmap/c created\n"
        await kubectl("create", "quota", "q", "--hard=cpu=500m,pods=2")
        await kubectl("create", "job", "j", "--image=busybox", "--", "true")
        await kubectl("create", "service", "clusterip", "s", "--tcp=80:web")
        assert await kubectl("get", "quota", "q", "-o", "jsonpath={.spec.hard}") == '{"cpu":"500m","pods":"2"}'
        assert await kubectl("get", "service", "s", "-o", "jsonpath={.spec.ports[0].targetPort}") == "web"
        assert await kubectl("auth", "can-i", "get", "pods") == "yes\n"
        assert "deleted" in await kubectl("delete", "role", "reader")
    finally:
        await listening.close()
