"""`fairlead serve`: the embedded API server on its own."""

import asyncio
import base64
import gc
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.api.files import write_private
from fairlead.api.world import World
from fairlead.cli.signals import until_told

if TYPE_CHECKING:
    from fairlead.server.app import Server
    from fairlead.server.authentication.users import User
    from fairlead.server.faults import Plan


@click.command()
@click.option("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="Where to listen; port 0 picks a free one.")
@click.option(
    "--token",
    envvar="FAIRLEAD_TOKEN",
    show_envvar=True,
    help="The token of an administrator. Made up when none is given. Others see the command line: rather say it in the "
    "environment or a file.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file holding tokens: one alone on a line, or token,user,uid,"group,group".',
)
@click.option(
    "--client-ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificates by this CA authenticate clients: CN is the user, each O a group.",
)
@click.option(
    "--authorization-mode",
    type=click.Choice(["AlwaysAllow", "RBAC"]),
    default="AlwaysAllow",
    show_default=True,
    help="Whether roles and bindings decide who may do what.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the state in this directory (0700): what was acknowledged is there again after a restart.",
)
@click.option(
    "--audit-log-path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append a line in audit.k8s.io/v1 for each request: who, what, when and what came of it; no bodies.",
)
@click.option("--no-tls", is_flag=True, help="Plain HTTP, on loopback only. kubectl sends no token over it.")
@click.option("--write-kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig (0600).")
@click.option(
    "--faults",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A fault plan to follow: what to delay, refuse, drop, cut or answer stale.",
)
@click.option("--controllers", default="", metavar="NAMES", help="Also run controllers: gc, namespace, or both.")
def serve(
    listen: str,
    token: str | None,
    token_file: Path | None,
    client_ca_file: Path | None,
    authorization_mode: str,
    audit_log_path: Path | None,
    data: Path | None,
    no_tls: bool,
    write_kubeconfig: Path | None,
    faults: Path | None,
    controllers: str,
) -> None:
    """Serve the Kubernetes API until interrupted, from memory unless --data is given."""
    gc.disable()  # until it serves: what a start makes stays, and looking through it takes a tenth of the start
    from fairlead.server.app import Server

    host, port = _address(listen)
    world = World()
    tokens = _tokens(world, token, token_file)
    client_ca = client_ca_file.read_bytes() if client_ca_file else None
    try:
        server = Server(
            world,
            tokens=tokens,
            authorization=authorization_mode,
            controllers=[name for name in controllers.split(",") if name],
            audit=audit_log_path,
            data=data,
        )
        server.inject(_plan(faults) if faults else None)
        shown = next((one for one, user in tokens.items() if user.is_master), next(iter(tokens)))
        asyncio.run(until_told(_serve(server, host, port, shown, not no_tls, client_ca, write_kubeconfig)))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        what = f"write {error.filename}" if error.filename else f"listen on {listen}"
        raise click.ClickException(f"cannot {what}: {error.strerror or error}; name another place") from None


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen wants HOST:PORT, as 127.0.0.1:0, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _tokens(world: World, token: str | None, file: Path | None) -> "dict[str, User]":
    """Who is known by which token; an administrator's is made up where none is given."""
    from fairlead.server.authentication import tokens
    from fairlead.server.authentication.users import ADMIN

    found = {token: ADMIN} if token else {}
    if file:
        try:
            read = tokens.read(file.read_text())
        except ValueError as error:
            raise click.UsageError(f"{file}: {error}") from None
        if not read:
            raise click.UsageError(f"{file} holds no token: write one line into it")
        found |= read
    return found or {f"{world.random.getrandbits(128):032x}": ADMIN}


def _plan(file: Path) -> "Plan":
    from fairlead.server.faults import Plan

    try:
        return Plan.read(file.read_text())
    except ValueError as error:
        raise click.UsageError(f"{file}: {error}") from None


async def _serve(
    server: "Server", host: str, port: int, token: str, tls: bool, client_ca: bytes | None, kubeconfig: Path | None
) -> int:
    listening = await server.listen(host, port, tls=tls, client_ca=client_ca)
    try:
        if kubeconfig is not None:
            write_private(kubeconfig, kubeconfig_text(listening.url, token, listening.ca))
            click.echo(f"kubeconfig {kubeconfig}")
        gc.freeze()
        gc.set_threshold(10_000)  # JSON has no cycles to find: at 700 a tenth of a create was looking for them
        gc.enable()
        click.echo(f"serving on {listening.url}")
        await asyncio.Event().wait()
        return 0
    finally:
        await listening.close()
        server.close()


def kubeconfig_text(url: str, token: str, ca: bytes | None) -> str:
    """A kubeconfig for one server, as JSON (which is YAML)."""
    cluster: dict[str, str] = {"server": url}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fairlead", "cluster": cluster}],
        "users": [{"name": "fairlead", "user": {"token": token}}],
        "contexts": [{"name": "fairlead", "context": {"cluster": "fairlead", "user": "fairlead"}}],
        "current-context": "fairlead",
    }
    return json.dumps(config, indent=2) + "\n"
