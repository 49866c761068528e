"""Parse the backends in the spec of an HTTPProxy."""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import fairlead as fl

REMEDY = "write a URL like https://backend.example.com:8443"
CONNECTOR_ADDRESS = "connector.local"
"""The placeholder for the far end of a tunnel. The data plane replaces it with the real address."""


@dataclass(frozen=True)
class Backend:
    """A parsed backend of an HTTPProxy. `rule` and `index` are its position in the spec."""

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
        """The hostname in the backend's certificate, or None without TLS."""
        if self.scheme != "https":
            return None
        return self.tls_hostname or self.host

    @property
    def rewritten_host(self) -> str | None:
        """The Host header that the backend expects, or None if the client's Host header stays."""
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


_LINK_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_HOST = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.IGNORECASE)


def backends_of(proxy: fl.Object) -> Iterator[Backend]:
    """Yield the parsed backends of all rules without a redirect. Raises Terminal for an invalid endpoint."""
    for i, rule in enumerate(proxy.spec["rules"]):
        if not is_redirect(rule):
            for j, backend in enumerate(rule["backends"]):
                yield _parse_backend(i, j, backend)


def filters_in(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the filters of a rule and of its backends."""
    return [f for holder in (rule, *rule["backends"]) for f in holder.get("filters") or ()]


def is_redirect(rule: dict[str, Any]) -> bool:
    """Return whether the gateway answers requests of a rule with a redirect. Such a rule must have no backendRef."""
    return any(f["type"] == "RequestRedirect" for f in filters_in(rule))


def connectors_of(proxy: fl.Object) -> list[str]:
    """Return the names of the Connectors in the spec, also if an endpoint is invalid."""
    backends = (backend for rule in proxy.spec["rules"] for backend in rule["backends"])
    return [backend["connector"]["name"] for backend in backends if backend.get("connector")]


def _parse_backend(rule: int, index: int, backend: dict[str, Any]) -> Backend:
    endpoint, tls = backend["endpoint"], (backend.get("tls") or {}).get("hostname")
    try:
        url = urlsplit(endpoint)
        host, port = _normalize_host(url.hostname or ""), url.port
    except ValueError as error:
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {endpoint}: {error}; {REMEDY}") from error
    parsed = Backend(
        rule=rule,
        index=index,
        scheme=url.scheme,
        host=host,
        port=port or (443 if url.scheme == "https" else 80),
        connector=(backend.get("connector") or {}).get("name"),
        tls_hostname=tls,
    )
    if port == 0 or not (parsed.is_ip or (len(host) <= 253 and _HOST.fullmatch(host))):
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {endpoint} has no valid host or port; {REMEDY}")
    if not parsed.connector and (problem := _address_problem(host)):
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {endpoint}: {problem}")
    if parsed.scheme == "https" and parsed.is_ip and not tls:
        problem = f"https to the IP address {host} needs a hostname for the certificate check: set its tls.hostname"
        raise fl.Terminal("InvalidEndpoint", f"rule {rule}: {problem}")
    return parsed


def _normalize_host(host: str) -> str:
    """Return an IP address in its canonical form, and a hostname unchanged."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def _address_problem(host: str) -> str | None:
    """Return an error message with the fix if an EndpointSlice cannot contain the host, else None."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if max(map(len, host.split("."))) > 63:
            return "each part of a hostname may have at most 63 characters: shorten it"
        if "." not in host:
            return f"{host} is not a fully qualified name: write one like {host}.default.svc.cluster.local"
        return None
    if "%" in host:
        return f"an IPv6 zone is valid on one host only: write an address without %{host.partition('%')[2]}"
    if (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address in _LINK_LOCAL_MULTICAST[address.version]
    ):
        return f"{host} is valid on one host or link only: write an address that the gateway can reach"
    return None
