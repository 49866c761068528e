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


_ON_LINK = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_HOST = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.IGNORECASE)


def backends_of(proxy: fl.Object) -> Iterator[Backend]:
    """Each backend that requests reach, in order. Raises Terminal for what no retry can put right."""
    for i, rule in enumerate(proxy.spec["rules"]):
        if not redirects(rule):
            for j, backend in enumerate(rule["backends"]):
                yield _backend(i, j, backend)


def filters_in(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """What the user wants done to its requests, whether said of the rule or of its backend."""
    return [each for part in (rule, *rule["backends"]) for each in part.get("filters") or ()]


def redirects(rule: dict[str, Any]) -> bool:
    """Whether the gateway answers by itself: then a backend must not be named."""
    return any(each["type"] == "RequestRedirect" for each in filters_in(rule))


def connectors_of(proxy: fl.Object) -> list[str]:
    """The Connectors that it goes through, by name, whatever its endpoints are."""
    backends = (backend for rule in proxy.spec["rules"] for backend in rule["backends"])
    return [backend["connector"]["name"] for backend in backends if backend.get("connector")]


def _backend(rule: int, index: int, backend: dict[str, Any]) -> Backend:
    endpoint, tls = backend["endpoint"], (backend.get("tls") or {}).get("hostname")
    try:
        url = urlsplit(endpoint)
        host, port = _canonical(url.hostname or ""), url.port
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
    )
    if port == 0 or not (read.is_ip or (len(host) <= 253 and _HOST.fullmatch(host))):
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {endpoint} names no host and port; {REMEDY}")
    if not read.connector and (unfit := _unfit(host)):
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {endpoint}: {unfit}")
    if read.scheme == "https" and read.is_ip and not tls:
        said = f"rule {rule}: https to the address {host}, whose certificate has no name to check: set its tls.hostname"
        raise fl.Terminal("InvalidEndpoint", said)
    return read


def _canonical(host: str) -> str:
    """An address as the server wants it written; a name as it is."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def _unfit(host: str) -> str | None:
    """Why no EndpointSlice takes this host, and what to write instead. A tunnel's far end may be anything."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if max(map(len, host.split("."))) > 63:
            return "a part of a name may have at most 63 characters: shorten it"
        if "." not in host:
            return f"{host} is no full name: write one like {host}.default.svc.cluster.local"
        return None
    if "%" in host:
        return f"a zone means something on one host only: write an address without %{host.partition('%')[2]}"
    if address.is_loopback or address.is_link_local or address.is_unspecified or address in _ON_LINK[address.version]:
        return f"{host} means something on one host or link only: write an address that the gateway can reach"
    return None
