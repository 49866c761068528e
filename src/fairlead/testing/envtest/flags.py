"""Read the flags of kube-apiserver that the embedded server understands, and report the others."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fairlead.testing.envtest.versions import MINOR, find_mismatch

if TYPE_CHECKING:
    from fairlead.server.audit_policy import AuditPolicy
    from fairlead.server.authentication.token_keys import TokenSettings
    from fairlead.server.authentication.users import User

LOOPBACK: Final = "127.0.0.1"

UNDERSTOOD: Final = frozenset(
    {
        "api-audiences",
        "audit-log-path",
        "audit-policy-file",
        "authorization-mode",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "disable-admission-plugins",
        "emulated-version",
        "enable-admission-plugins",
        "etcd-servers",
        "feature-gates",
        "runtime-config",
        "secure-port",
        "service-account-issuer",
        "service-account-key-file",
        "service-account-signing-key-file",
        "tls-cert-file",
        "tls-private-key-file",
        "token-auth-file",
    }
)
"""The flags that have an effect, or a note of their own."""

HARMLESS: Final = frozenset(
    {
        "advertise-address",
        "allow-privileged",
        "anonymous-auth",
        "audit-log-format",
        "audit-log-mode",
        "endpoint-reconciler-type",
        "etcd-prefix",
        "event-ttl",
        "external-hostname",
        "goaway-chance",
        "kubernetes-service-node-port",
        "max-mutating-requests-inflight",
        "max-requests-inflight",
        "min-request-timeout",
        "profiling",
        "request-timeout",
        "service-cluster-ip-range",
        "shutdown-delay-duration",
        "storage-backend",
        "storage-media-type",
        "v",
        "vmodule",
        "watch-cache",
    }
)
"""Flags without an effect here whose absence no client notices."""


class FlagError(ValueError):
    """A flag has a value with which a real kube-apiserver would not start either. The message names the flag."""


class Flags:
    """The flags of a command line, in any of the forms --name=value, --name value and -name value."""

    def __init__(self, arguments: Iterable[str], folder: Path) -> None:
        self._values: dict[str, list[str]] = {}
        self._folder = folder
        name = ""
        for argument in arguments:
            if argument.startswith("-") and argument.strip("-"):
                name, equals, value = argument.lstrip("-").partition("=")
                values = self._values.setdefault(name, [])
                if equals:
                    values.append(value)
                    name = ""
            elif name:
                self._values[name].append(argument)
                name = ""

    def names(self) -> list[str]:
        return sorted(self._values)

    def all(self, name: str) -> list[str]:
        """Return all values of a repeated flag."""
        return self._values.get(name, [])

    def last(self, name: str, default: str = "") -> str:
        return (self.all(name) or [default])[-1]

    def names_in(self, name: str) -> list[str]:
        """Return the values of a list flag, whether it is repeated or separated by commas."""
        return [item.strip() for value in self.all(name) for item in value.split(",") if item.strip()]

    def pairs(self, name: str) -> dict[str, str]:
        """Return the values of a flag of the form a=b,c=d. A key without a value has the value "true"."""
        pairs = (item.partition("=") for item in self.names_in(name))
        return {key: value if equals else "true" for key, equals, value in pairs}

    def path(self, name: str) -> Path | None:
        """Return a path, relative to the folder in which the program was started."""
        value = self.last(name)
        return self._folder / value if value else None

    def read(self, name: str) -> bytes | None:
        """Return the content of the file that a flag names. Raises FlagError if it cannot be read."""
        path = self.path(name)
        return _read(name, path) if path else None

    def read_all(self, name: str) -> list[tuple[Path, bytes]]:
        return [(self._folder / value, _read(name, self._folder / value)) for value in self.all(name)]


@dataclass(frozen=True)
class ServerSettings:
    """How to start the embedded server.

    Parameters:
        server: keyword arguments of `Server`.
        listener: keyword arguments of `Server.listen`.
        notes: what a person should know about the flags, one sentence each.
    """

    server: dict[str, Any]
    listener: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def read_flags(arguments: list[str], folder: Path) -> ServerSettings:
    """Return the settings of the embedded server for a command line of kube-apiserver.

    Raises FlagError for a value with which a real server would not start either.
    """
    flags = Flags(arguments, folder)
    notes = _describe_ignored(flags)
    port = flags.last("secure-port", "6443")
    if not port.isdigit() or int(port) > 65535:
        raise FlagError(f"--secure-port={port} is not a port number")
    host = flags.last("bind-address", "0.0.0.0")  # noqa: S104 - the default of kube-apiserver, which is replaced
    if host != LOOPBACK:
        notes.append(f"listens on {LOOPBACK} instead of {host}: the embedded server serves this machine only")
    server = {
        "authorization": _choose_authorization(flags, notes),
        "audit": _find_audit_log(flags),
        "audit_policy": _read_audit_policy(flags),
        "tokens": _read_users(flags),
        "token_settings": _read_token_settings(flags),
        "enable_plugins": flags.names_in("enable-admission-plugins"),
        "disable_plugins": flags.names_in("disable-admission-plugins"),
    }
    listener = {
        "host": LOOPBACK,
        "port": int(port),
        "client_ca": flags.read("client-ca-file"),
        "certificate": _find_certificate(flags),
    }
    return ServerSettings(server, listener, notes)


def _describe_ignored(flags: Flags) -> list[str]:
    notes = [
        f"ignores --{name}: the embedded server does not have this flag"
        for name in flags.names()
        if name not in UNDERSTOOD and name not in HARMLESS
    ]
    if mismatch := find_mismatch(flags.last("emulated-version"), "--emulated-version"):
        notes.append(mismatch)
    gates = [f"{gate}={value}" for gate, value in sorted(flags.pairs("feature-gates").items())]
    if gates:
        notes.append(f"ignores --feature-gates={','.join(gates)}: gates have their defaults of Kubernetes {MINOR}")
    versions = [f"{version}={value}" for version, value in sorted(flags.pairs("runtime-config").items())]
    if versions:
        notes.append(f"ignores --runtime-config={','.join(versions)}: the default versions of {MINOR} are served")
    return notes


def _choose_authorization(flags: Flags, notes: list[str]) -> str:
    modes = flags.names_in("authorization-mode") or ["AlwaysAllow"]
    if "AlwaysAllow" in modes:
        return "AlwaysAllow"
    if modes != ["RBAC"]:
        notes.append(f"uses RBAC for --authorization-mode={','.join(modes)}: other modes do not exist here")
    return "RBAC"


def _find_audit_log(flags: Flags) -> Path | None:
    path = flags.path("audit-log-path")
    # A real server writes to its output then. Nobody reads that of a test server.
    return None if path is None or path.name == "-" else path


def _read_audit_policy(flags: Flags) -> "AuditPolicy | None":
    content = flags.read("audit-policy-file")
    if content is None:
        return None
    from fairlead.server.audit_policy import parse_policy

    try:
        return parse_policy(content.decode())
    except ValueError as error:
        raise FlagError(f"--audit-policy-file: {error}") from None


def _read_users(flags: Flags) -> "dict[str, User]":
    from fairlead.server.authentication import static_tokens

    content = flags.read("token-auth-file")
    if content is None:
        return {}
    try:
        return static_tokens.parse_token_file(content.decode())
    except ValueError as error:
        raise FlagError(f"--token-auth-file: {error}") from None


def _read_token_settings(flags: Flags) -> "TokenSettings | None":
    issuers = flags.all("service-account-issuer")
    if not issuers:
        return None
    from fairlead.server.authentication import token_keys

    signing_key = None
    verification_keys: list[token_keys.PublicKey] = []
    signing = flags.read("service-account-signing-key-file")
    try:
        if signing is not None:
            signing_key = token_keys.parse_private_key(signing)
        for _, content in flags.read_all("service-account-key-file"):
            verification_keys.extend(token_keys.parse_public_keys(content))
    except ValueError as error:
        raise FlagError(f"--service-account-signing-key-file or --service-account-key-file: {error}") from None
    audiences = flags.names_in("api-audiences") or issuers
    return token_keys.TokenSettings(tuple(issuers), tuple(audiences), signing_key, tuple(verification_keys))


def _find_certificate(flags: Flags) -> tuple[Path, Path] | None:
    """Return the files of the serving certificate and its key, or None if the server has to create them."""
    certificate, key = flags.path("tls-cert-file"), flags.path("tls-private-key-file")
    if certificate and key:
        return certificate, key
    folder = flags.path("cert-dir")
    if folder and (folder / "apiserver.crt").exists() and (folder / "apiserver.key").exists():
        return folder / "apiserver.crt", folder / "apiserver.key"
    return None


def _read(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FlagError(f"--{name}: cannot read {path}: {error.strerror}") from None


def parse_request(line: bytes) -> tuple[list[str], Path, dict[str, str]]:
    """Return the arguments, the folder and the environment that the program `kube-apiserver` sent."""
    request = json.loads(line)
    return request["arguments"], Path(request["folder"]), request["environment"]
