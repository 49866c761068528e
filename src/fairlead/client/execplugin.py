"""Credentials from an exec plugin of a kubeconfig (client.authentication.k8s.io v1 and v1beta1)."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.api import times
from fairlead.api.text import printable
from fairlead.api.world import World
from fairlead.client.credentials import CredentialsError, Identity

GROUP = "client.authentication.k8s.io"
VERSIONS = frozenset({f"{GROUP}/v1", f"{GROUP}/v1beta1"})
TIME_LIMIT = 60.0  # seconds; cloud tools start slowly and use the network, one that takes longer waits for input
MARGIN = 10.0  # seconds before the expiration at which a credential is replaced, because a request takes time


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


_decode = msgspec.json.Decoder(_ExecCredential).decode


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """The `exec` section of a kubeconfig user: how to run a credential plugin.

    `info` is the cluster information that the plugin gets if `provideClusterInfo` is set, else None.
    """

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    info: Mapping[str, Any] | None = None


class ExecCredentials:
    """Credentials from an exec plugin, which prints an ExecCredential.

    Guarantees:
    - The plugin runs if there is no credential yet, if the credential expires soon, or if the server answered 401.
    - Only one run is active at a time. It has no shell, terminal or input, and a time limit.
    - The output is never shown. The error output is shown if the plugin fails.
    - A run continues if the waiting requests are cancelled, because the next request needs its result.
    """

    def __init__(self, plugin: ExecPlugin, world: World, env: Mapping[str, str]) -> None:
        self._plugin = plugin
        self._world = world
        self._env = env
        self._identity: Identity | None = None
        self._expires: float | None = None
        self._running: asyncio.Task[Identity] | None = None

    async def identity(self) -> Identity:
        if self._identity is not None and (self._expires is None or self._world.clock.now() < self._expires):
            return self._identity
        if self._running is None:
            self._running = asyncio.create_task(self._refresh())
            self._running.add_done_callback(self._on_run_ended)
        return await asyncio.shield(self._running)

    async def _refresh(self) -> Identity:
        self._identity, self._expires = self._read(await self._run())
        return self._identity

    def _on_run_ended(self, run: asyncio.Task[Identity]) -> None:
        self._running = None
        if not run.cancelled():
            run.exception()  # mark the exception as retrieved, also if nobody awaits the task

    def on_unauthorized(self, identity: Identity) -> None:
        current = self._identity
        if current is not None and (current.authorization or current.certificate) in {
            identity.authorization,
            identity.certificate,
        }:
            self._identity = None  # only if there is no newer one

    async def _run(self) -> bytes:
        plugin = self._plugin
        program = shutil.which(plugin.command, path=self._env.get("PATH"))
        if program is None:
            hint = f": {plugin.install_hint}" if plugin.install_hint else ""
            raise self._build_error("is not installed, or not in PATH" + hint)
        spec: dict[str, Any] = {"interactive": False}
        if plugin.info is not None:
            spec["cluster"] = plugin.info
        exec_info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
        env = {**self._env, **dict(plugin.env), "KUBERNETES_EXEC_INFO": msgspec.json.encode(exec_info).decode()}
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *plugin.args,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # its child processes end with it, and none has a terminal
            )
        except OSError as error:
            raise self._build_error(f"does not start ({error.strerror})") from error
        try:
            async with asyncio.timeout(TIME_LIMIT):
                output, error_output = await process.communicate()
        except TimeoutError:
            raise self._build_error(
                f"did not answer within {TIME_LIMIT:g} s: run it by hand, it may be waiting for a log-in"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode != 0:
            message = " ".join(printable(error_output.decode(errors="replace")).split())[-300:]
            raise self._build_error(f"ended with {process.returncode}: {message or 'no error output'}")
        return output

    def _read(self, output: bytes) -> tuple[Identity, float | None]:
        try:
            answer = _decode(output)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._build_error(
                "did not print an ExecCredential as JSON: run it by hand to see what it prints"
            ) from error
        status = answer.status
        if answer.kind != "ExecCredential" or status is None:
            raise self._build_error(
                "did not print an ExecCredential with a status: run it by hand to see what it prints"
            )
        if answer.api_version != self._plugin.api_version:
            raise self._build_error(
                f"answered in {printable(answer.api_version)!r} although the kubeconfig says "
                f"{self._plugin.api_version}: make them agree"
            )
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._build_error("gave a certificate without its key, or the reverse: it must give both")
        if not status.token and not status.client_certificate_data:
            raise self._build_error("gave neither a token nor a certificate: are you logged in?")
        if status.token and not (status.token.isascii() and status.token.isprintable()):
            raise self._build_error(
                "gave a token that cannot be sent: it contains line breaks or other control characters"
            )
        try:
            end = status.expiration_timestamp
            expires = times.parse(end) - MARGIN if end else None
        except ValueError as error:
            raise self._build_error("gave an expirationTimestamp that is not RFC 3339") from error
        certificate, key = status.client_certificate_data, status.client_key_data
        identity = Identity(
            f"Bearer {status.token}" if status.token else None,
            certificate.encode() if certificate else None,
            key.encode() if key else None,
        )
        return identity, expires

    def _build_error(self, problem: str) -> CredentialsError:
        return CredentialsError(f"the credential plugin {self._plugin.command!r} {problem}")
