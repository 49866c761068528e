"""What a backend of a rule means: pure reading of the spec."""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import fairlead as fl

REMEDY = "write a URL like https://backend.example.com:8443"
CONNECTOR_ADDRESS = "connector.local"
"""Stands for the far end of a tunnel; the data plane puts the real one in its place."""


@dataclass(frozen=True)
class Backend:
    """Backend `index` of rule `rule`, read."""

    rule: int
    index: int
    scheme: str
    host: str
    port: int
    connector: str | None
    tls_hostname: str | None
    filters: tuple[dict[str, Any], ...]

    @property
    def address_type(self) -> str:
        if self.connector:
            return "FQDN"
        try:
            return f"IPv{ipaddress.ip_address(self.host).version}"
        except ValueError:
            return "FQDN"

    @property
    def address(self) -> str:
        return CONNECTOR_ADDRESS if self.connector else self.host

    @property
    def cert_hostname(self) -> str | None:
        """The name that the backend's certificate must carry; None without TLS."""
        if self.scheme != "https":
            return None
        return self.tls_hostname or self.host

    @property
    def rewritten_host(self) -> str | None:
        """The Host that the backend expects; None leaves the client's."""
        if self.is_ip:
            return self.tls_hostname if self.scheme == "https" else None
        return self.host

    @property
    def is_ip(self) -> bool:
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True


_HOST = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.IGNORECASE)


def backends_of(proxy: fl.Object) -> Iterator[Backend]:
    """Each backend in order. Raises Terminal for what no retry can put right."""
    for i, rule in enumerate(proxy.spec["rules"]):
        for j, backend in enumerate(rule["backends"]):
            yield _backend(i, j, backend)


def connectors_of(proxy: fl.Object) -> list[str]:
    """The Connectors that it goes through, by name, whatever its endpoints are."""
    backends = (backend for rule in proxy.spec["rules"] for backend in rule["backends"])
    return [backend["connector"]["name"] for backend in backends if backend.get("connector")]


def _backend(rule: int, index: int, backend: dict[str, Any]) -> Backend:
    endpoint, tls = backend["endpoint"], (backend.get("tls") or {}).get("hostname")
    try:
        url = urlsplit(endpoint)
        host, port = url.hostname or "", url.port
    except ValueError as error:
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {endpoint}: {error}; {REMEDY}") from error
    read = Backend(
        rule=rule,
        index=index,
        scheme=url.scheme,
        host=host,
        port=port or (443 if url.scheme == "https" else 80),
        connector=(backend.get("connector") or {}).get("name"),
        tls_hostname=tls,
        filters=tuple(backend.get("filters") or ()),
    )
    if port == 0 or not (read.is_ip or (len(host) <= 253 and _HOST.fullmatch(host))):
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {endpoint} names no host and port; {REMEDY}")
    if read.scheme == "https" and read.is_ip and not tls:
        said = f"rule {rule}: https to the address {host}, whose certificate has no name to check: set its tls.hostname"
        raise fl.Terminal("InvalidEndpoint", said)
    return read
