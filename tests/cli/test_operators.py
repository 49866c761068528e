"""Tests that `fairlead run fairlead_operators.X --embedded` runs each reference operator with its CRDs."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.api import manifests
from fairlead.api.world import World
from fairlead.cli.embedded import prepare
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead_operators import crds

ROOT = Path(__file__).parents[2]
BAD = {
    "httpproxy": ("networking.datumapis.com/v1alpha", "HTTPProxy", {"rules": []}),
    "seinode": ("sei.io/v1alpha1", "SeiNode", {"chainId": "pacific-1"}),
    "pulsar": ("resource.streamnative.io/v1alpha1", "PulsarTenant", {"name": "acme"}),
}


def run(system, *options):
    command = [
        sys.executable,
        "-m",
        "fairlead",
        "run",
        f"fairlead_operators.{system}",
        "--embedded",
        "--once",
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=110)


@pytest.mark.parametrize("system", ["httpproxy", "seinode", "projects", "pulsar", "orphans"])
def test_reference_operator_runs_without_a_cluster(system):
    completed = run(system)
    assert completed.returncode == 0, completed.stderr
    assert "allows every field" not in completed.stderr


@pytest.mark.parametrize("system", BAD)
def test_embedded_server_refuses_what_the_schema_refuses(system, tmp_path):
    version, kind, spec = BAD[system]
    (tmp_path / "bad.yaml").write_text(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: bad}}\nspec: {spec}\n")
    completed = run(system, "--apply", str(tmp_path / "bad.yaml"))
    assert completed.returncode != 0
    (line,) = [line for line in completed.stderr.splitlines() if "cannot apply" in line]
    assert "is invalid" in line


def test_configuration_error_is_one_line(monkeypatch):
    monkeypatch.setenv("PROJECTS_EXTENDED_PERMISSIONS", "/no/such/file")
    completed = run("projects")
    assert completed.returncode != 0
    assert "Traceback" not in completed.stderr
    assert "/no/such/file: cannot be read" in completed.stderr.splitlines()[-1]


@pytest.mark.parametrize("system", ["httpproxy", "seinode", "projects", "pulsar", "orphans"])
async def test_embedded_server_accepts_the_sample_of_the_readme(system, tmp_path):
    world = World()
    readme = (ROOT / "operators" / system / "README.md").read_text(encoding="utf-8")
    sample, transport = tmp_path / "sample.yaml", Server(world).transport()
    sample.write_text(readme.partition("## Try it")[2].partition("```yaml\n")[2].partition("```")[0])
    owner = "httpproxy" if system == "orphans" else system
    await crds.install(Client(transport, world), f"fairlead_operators.{owner}")
    samples = manifests.read_objects(sample)
    assert samples
    await prepare(transport, world, [], samples)
