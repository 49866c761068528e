"""`fairlead serve`: the embedded API server on its own."""

import asyncio
import base64
import json
import os
import signal
from pathlib import Path

import click

from fairlead.api.world import World
from fairlead.server.app import Server


@click.command()
@click.option("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="Where to listen; port 0 picks a free one.")
@click.option("--token", help="The token that clients must send. Made up when none is given.")
@click.option(
    "--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file holding the token."
)
@click.option("--no-tls", is_flag=True, help="Plain HTTP, on loopback only. kubectl sends no token over it.")
@click.option("--write-kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig (0600).")
@click.option("--controllers", default="", metavar="NAMES", help="Also run controllers: gc, namespace, or both.")
def serve(
    listen: str,
    token: str | None,
    token_file: Path | None,
    no_tls: bool,
    write_kubeconfig: Path | None,
    controllers: str,
) -> None:
    """Serve the Kubernetes API from memory until interrupted."""
    if token and token_file:
        raise click.UsageError("give --token or --token-file, not both")
    host, port = _address(listen)
    world = World()
    if token_file:
        token = token_file.read_text().strip()
        if not token:
            raise click.UsageError(f"{token_file} holds no token: write one line into it")
    token = token or f"{world.random.getrandbits(128):032x}"
    try:
        server = Server(world, tokens=[token], controllers=[name for name in controllers.split(",") if name])
        asyncio.run(_serve(server, host, port, token, tls=not no_tls, kubeconfig=write_kubeconfig))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot listen on {listen}: {error.strerror or error}") from None


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen wants HOST:PORT, as 127.0.0.1:0, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


async def _serve(server: Server, host: str, port: int, token: str, *, tls: bool, kubeconfig: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    listening = await server.listen(host, port, tls=tls)
    try:
        if kubeconfig is not None:
            write_private(kubeconfig, kubeconfig_text(listening.url, token, listening.ca))
            click.echo(f"kubeconfig {kubeconfig}")
        click.echo(f"serving on {listening.url}")
        await stop.wait()
    finally:
        await listening.close()


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


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing what was there and following no link."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    scratch.replace(path)
