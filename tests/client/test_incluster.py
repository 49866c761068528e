"""Tests of the access configuration inside a pod, and of the default access configuration."""

import asyncio

import pytest

from fairlead.api.world import World
from fairlead.client import incluster, locate
from fairlead.client.access import AccessError, Cluster
from fairlead.client.credentials import CredentialsError, Identity
from fairlead.testing import virtual

POD_ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def write_service_account(tmp_path, monkeypatch):
    monkeypatch.setattr(incluster, "MOUNT", tmp_path)
    for name, content in {"token": "t1\n", "ca.crt": "CA", "namespace": "team\n"}.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def test_the_service_account_token_is_read_again(write_service_account):
    async def main():
        access = incluster.load(virtual.world(), POD_ENVIRONMENT)
        assert access.cluster == Cluster("https://10.0.0.1:6443", b"CA")
        assert access.namespace == "team"
        assert await access.credentials.identity() == Identity("Bearer t1")
        (write_service_account / "token").write_text("t2")
        await asyncio.sleep(10)
        assert await access.credentials.identity() == Identity("Bearer t2")

    virtual.run(main())


def test_ipv6_host_and_pod_namespace_are_supported(write_service_account):
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "POD_NAMESPACE": "other"}
    access = incluster.load(World(), env)
    assert access.cluster.server == "https://[fd00::1]:443"
    assert access.namespace == "other"


async def test_a_missing_file_error_names_the_fix(write_service_account):
    with pytest.raises(AccessError, match="name a kubeconfig"):
        incluster.load(World(), {})
    (write_service_account / "token").write_text("\n")
    with pytest.raises(CredentialsError, match="contains no bearer token"):
        await incluster.load(World(), POD_ENVIRONMENT).credentials.identity()
    (write_service_account / "ca.crt").unlink()
    with pytest.raises(AccessError, match="automountServiceAccountToken"):
        incluster.load(World(), POD_ENVIRONMENT)


CONFIG = """
current-context: {name}
clusters: [{{name: c, cluster: {{server: "https://c"}}}}]
contexts: [{{name: {name}, context: {{cluster: c}}}}]
"""


def test_access_is_looked_up_in_file_environment_pod_home_order(write_service_account, tmp_path):
    (tmp_path / ".kube").mkdir()
    for path, name in (("named", "named"), ("listed", "listed"), (".kube/config", "home")):
        (tmp_path / path).write_text(CONFIG.format(name=name))
    home_environment = {"HOME": str(tmp_path)}
    environment = {**home_environment, **POD_ENVIRONMENT, "KUBECONFIG": str(tmp_path / "listed")}
    world = World()
    assert locate.locate(world, path=tmp_path / "named", env=environment).name == "named"
    assert locate.locate(world, env=environment).name == "listed"
    assert locate.locate(world, env={**home_environment, **POD_ENVIRONMENT}).name == "in-cluster"
    assert locate.locate(world, env=home_environment).name == "home"
    assert locate.locate(world, context="home", env={**home_environment, **POD_ENVIRONMENT}).name == "home"
