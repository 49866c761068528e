"""`fairlead serve`: run the embedded API server on its own."""

import asyncio
import base64
import gc
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.api.files import write_private
from fairlead.api.world import World
from fairlead.cli.signals import run_until_signal

if TYPE_CHECKING:
    from fairlead.server.app import Server
    from fairlead.server.audit_policy import AuditPolicy
    from fairlead.server.authentication.users import User


class _CannotServe(click.ClickException):
    exit_code = 2


@click.command()
@click.option(
    "--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="Address to listen on; port 0 picks a free port."
)
@click.option(
    "--token",
    envvar="FAIRLEAD_TOKEN",
    show_envvar=True,
    help="The administrator's token; random if not set. Other users of this machine can read the command line, so "
    "prefer the environment variable or --token-file.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file with one token per line: the token alone, or token,user,uid,"group,group".',
)
@click.option(
    "--client-ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Accept client certificates signed by this CA: CN is the user, each O a group.",
)
@click.option(
    "--authorization-mode",
    type=click.Choice(["AlwaysAllow", "RBAC"]),
    default="AlwaysAllow",
    show_default=True,
    help="With RBAC, roles and bindings decide what a user may do.",
)
@click.option(
    "--service-cluster-ip-range",
    default="10.0.0.0/24",
    show_default=True,
    metavar="CIDR",
    help="The IPv4 network of the cluster IPs of Services.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Store the state in this directory (mode 0700). It survives a restart.",
)
@click.option(
    "--audit-log-path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append an audit.k8s.io/v1 event to this file for each request, at level Metadata (no bodies) unless a policy "
    "says otherwise.",
)
@click.option(
    "--audit-policy-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An audit policy as for kube-apiserver: which requests are logged, at which level and stages.",
)
@click.option(
    "--no-tls",
    is_flag=True,
    help="Serve plain HTTP, on loopback only. kubectl does not send its token over plain HTTP.",
)
@click.option(
    "--write-kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig (mode 0600)."
)
@click.option(
    "--faults",
    metavar="FILE|SEED",
    help="A fault plan: which requests to delay, reject, drop, cut or answer from old state. A number is the seed of a "
    "plan that every correct client survives. At the end, the injected faults and the requests, conflicts and no-op "
    "writes of each client are printed.",
)
@click.option("--controllers", default="", metavar="NAMES", help="Also run controllers: gc, namespace, or both.")
@click.option(
    "--enable-admission-plugins",
    default="",
    metavar="NAMES",
    help="Admission plugins to run besides the default ones of kube-apiserver, separated by commas.",
)
@click.option(
    "--disable-admission-plugins",
    default="",
    metavar="NAMES",
    help="Admission plugins not to run, for example LimitRanger,RuntimeClass.",
)
@click.option(
    "--webhook-hosts",
    default="",
    metavar="HOSTS",
    help="Hosts besides loopback that the URLs of webhooks may have, separated by commas.",
)
@click.option(
    "--webhook-services",
    default="",
    metavar="SERVICES",
    help="Where the Services of webhooks listen: NAMESPACE/NAME=HOST:PORT, separated by commas.",
)
def serve(
    listen: str,
    token: str | None,
    token_file: Path | None,
    client_ca_file: Path | None,
    authorization_mode: str,
    service_cluster_ip_range: str,
    audit_log_path: Path | None,
    audit_policy_file: Path | None,
    data: Path | None,
    no_tls: bool,
    write_kubeconfig: Path | None,
    faults: str | None,
    controllers: str,
    enable_admission_plugins: str,
    disable_admission_plugins: str,
    webhook_hosts: str,
    webhook_services: str,
) -> None:
    """Serve the Kubernetes API until interrupted. State is in memory unless --data is given."""
    gc.disable()  # Start-up allocates objects that stay; collecting them would take a tenth of the start-up time.
    from fairlead.server.app import Server
    from fairlead.server.webhooks.https_caller import HttpsCaller

    host, port = _parse_address(listen)
    world = World()
    users = _load_users(world, token, token_file)
    client_ca = client_ca_file.read_bytes() if client_ca_file else None
    try:
        server = Server(
            world,
            tokens=users,
            authorization=authorization_mode,
            service_range=service_cluster_ip_range,
            controllers=_split_names(controllers),
            webhook_caller=HttpsCaller(_split_names(webhook_hosts), _parse_services(webhook_services)),
            enable_plugins=_split_names(enable_admission_plugins),
            disable_plugins=_split_names(disable_admission_plugins),
            audit=audit_log_path,
            audit_policy=_read_audit_policy(audit_policy_file, audit_log_path) if audit_policy_file else None,
            data=data,
        )
        if faults:
            _inject_faults(server, faults)
        admin_token = next((user_token for user_token, user in users.items() if user.is_superuser), next(iter(users)))
        asyncio.run(run_until_signal(_serve(server, host, port, admin_token, not no_tls, client_ca, write_kubeconfig)))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        action = f"write {error.filename}" if error.filename else f"listen on {listen}"
        raise _CannotServe(f"cannot {action}: {error.strerror or error}; choose another") from None


def _split_names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _parse_services(text: str) -> dict[str, tuple[str, int]]:
    services: dict[str, tuple[str, int]] = {}
    for item in _split_names(text):
        name, _, address = item.partition("=")
        host, _, port = address.rpartition(":")
        if name.count("/") != 1 or not host or not port.isdigit():
            example = "for example default/my-webhook=127.0.0.1:9443"
            raise click.UsageError(f"--webhook-services {item!r} is not NAMESPACE/NAME=HOST:PORT: write {example}")
        services[name] = host.strip("[]"), int(port)
    return services


def _parse_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen {text!r} is not HOST:PORT: write for example 127.0.0.1:0")
    return host.strip("[]") or "127.0.0.1", int(port)


def _load_users(world: World, token: str | None, file: Path | None) -> "dict[str, User]":
    """Return the user of each token from --token and --token-file, or a generated admin token without them."""
    from fairlead.server.authentication import static_tokens
    from fairlead.server.authentication.users import ADMIN

    users = {token: ADMIN} if token else {}
    if file:
        try:
            from_file = static_tokens.parse_token_file(file.read_text())
        except ValueError as error:
            raise click.UsageError(f"{file}: {error}") from None
        if not from_file:
            raise click.UsageError(f"{file} contains no token: write one per line")
        users |= from_file
    return users or {f"{world.random.getrandbits(128):032x}": ADMIN}


def _read_audit_policy(file: Path, log: Path | None) -> "AuditPolicy":
    from fairlead.server.audit_policy import parse_policy

    if log is None:
        raise click.UsageError("--audit-policy-file needs --audit-log-path, the file to which the events are written")
    try:
        return parse_policy(file.read_text())
    except ValueError as error:
        raise click.UsageError(f"{file}: {error}") from None


def _inject_faults(server: "Server", source: str) -> None:
    from fairlead.server.client_report import ClientReport
    from fairlead.server.faults import Plan

    try:
        server.inject(Plan.load(source))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"--faults: cannot read {source}: {error.strerror}; name a file or a seed") from None
    server.clients = ClientReport()


async def _serve(
    server: "Server", host: str, port: int, token: str, uses_tls: bool, client_ca: bytes | None, kubeconfig: Path | None
) -> int:
    listening = await server.listen(host, port, tls=uses_tls, client_ca=client_ca)
    try:
        if kubeconfig is not None:
            write_private(kubeconfig, kubeconfig_text(listening.url, token, listening.ca))
            click.echo(f"kubeconfig {kubeconfig}")
        gc.freeze()
        gc.set_threshold(10_000)  # JSON has no cycles. At the default of 700, a tenth of a create was collection.
        gc.enable()
        click.echo(f"serving on {listening.url}")
        click.echo(f"the API is that of Kubernetes {_minor_version()}")
        await asyncio.Event().wait()
        return 0
    finally:
        await listening.close()
        server.close()
        if server.faults is not None and server.clients is not None:
            click.echo("\n".join([server.faults.describe(), *server.clients.lines()]))


def _minor_version() -> str:
    from fairlead.server.discovery import VERSION

    return f"{VERSION['major']}.{VERSION['minor']}"


def kubeconfig_text(url: str, token: str, ca: bytes | None) -> str:
    """Return a kubeconfig for one server, as JSON (which is also YAML)."""
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
