"""An embedded server with TLS and RBAC for third-party clients, and its kubeconfig."""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.cli.serve import kubeconfig_text, write_private
from fairlead.server.app import Server

TIMEOUT = 60  # seconds; the machine may be busy with other tests


@dataclass
class RunningServer:
    """A listening server and its connection parameters."""

    server: Server
    url: str
    ca: bytes
    token: str
    kubeconfig: Path
    home: Path

    @property
    def environment(self):
        environment = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        return {**environment, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "NO_COLOR": "1"}

    async def run(self, *command, stdin="", code=0, **environment):
        """Run a program against the server and expect the exit code `code`. Return its output."""
        process = await asyncio.create_subprocess_exec(
            *[str(argument) for argument in command],
            env={**self.environment, **environment},
            cwd=self.home,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            stdout, stderr = await asyncio.wait_for(process.communicate(stdin.encode()), TIMEOUT)
        except TimeoutError:
            process.kill()
            stdout, stderr = await process.communicate()
            pytest.fail(f"{command} did not end:\n{stdout.decode()}\n{stderr.decode()}")
        assert process.returncode == code, (
            f"{command} ended with {process.returncode}:\n{stdout.decode()}\n{stderr.decode()}"
        )
        return stdout.decode() if code == 0 else stderr.decode()

    async def send(self, method, path, body=None, content_type="application/json"):
        """Send one request in this process, to prepare or check the server without the client under test."""
        encoded_body = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type}
        response = await self.server.transport().request(HttpRequest(method, path, headers=headers, body=encoded_body))
        assert response.status < 300, response.body
        return json.loads(response.body)


@pytest.fixture
async def served(tmp_path):
    server = Server(World(), tokens=["secret"], authorization="RBAC")
    listening = await server.listen()
    path = tmp_path / "kubeconfig"
    write_private(path, kubeconfig_text(listening.url, "secret", listening.ca))
    home = tmp_path / "home"
    home.mkdir()
    yield RunningServer(server, listening.url, listening.ca, "secret", path, home)
    await listening.close()
