"""A client for the parts of Pulsar's admin REST API that the operator uses."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlsplit

from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.client.transport import Response

# A broker needs some seconds to load a namespace. After half a minute something is wrong.
TIMEOUT = 30.0


class Http(Protocol):
    """A connection to one HTTP server. A fairlead Transport implements this protocol."""

    async def request(self, request: HttpRequest) -> Response: ...


class NotPulsarError(Exception):
    """The server behind the URL is not Pulsar's admin API."""


class PulsarError(Exception):
    """An error response of Pulsar. `str()` returns the reason in the response."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason or f"HTTP {status}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart form."""

    name: str
    content_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Admin:
    """A client for the admin API of one Pulsar. Paths are relative to `/admin`, quoted, and may have a query.

    Raises PulsarError for an error response, NotPulsarError for a response that is not Pulsar's, and OSError or
    TimeoutError without a response. Does not follow redirects, because the token would be sent to another host.
    """

    http: Http

    async def clusters(self) -> list[str]:
        """Return the names of Pulsar's clusters. Raises NotPulsarError if the server is not a Pulsar."""
        clusters = await self.get("/v2/clusters")
        if not isinstance(clusters, list):
            raise NotPulsarError(
                "/admin/v2/clusters does not exist" if clusters is None else "/admin/v2/clusters is not a list"
            )
        return clusters

    async def get(self, path: str) -> Any:
        """Send a GET and return the JSON of the response, or None for a 404."""
        try:
            return await self.call("GET", path)
        except PulsarError as error:
            if error.status == 404:
                return None
            raise

    async def put(self, path: str, body: Any = None) -> bool:
        """Send a PUT that creates a resource. Return False if the resource already exists and stays unchanged."""
        try:
            await self.call("PUT", path, body)
        except PulsarError as error:
            if error.status == 409:
                return False
            raise
        return True

    async def post(self, path: str, body: Any = None) -> None:
        await self.call("POST", path, body)

    async def delete(self, path: str, *, missing_status: int = 404, probe_path: str | None = None) -> None:
        """Send a DELETE. A missing resource, for which Pulsar returns 404 or `missing_status`, is not an error.

        For a missing package Pulsar returns 500. A GET of `probe_path` (default: `path`) then checks if it exists.
        """
        try:
            await self.call("DELETE", path)
        except PulsarError as error:
            if error.status in (404, missing_status):
                return
            if error.status < 500 or await self.get(probe_path or path) is not None:
                raise

    async def form(self, method: str, path: str, form_parts: Sequence[Part]) -> None:
        """Send a multipart form, which packages, functions, sinks and sources need."""
        digest = hashlib.sha256(b"\0".join(part.content for part in form_parts)).hexdigest()
        boundary, body = f"fairlead-{digest}", b""
        for part in form_parts:
            file = '; filename="file"' if part.content_type == "application/octet-stream" else ""
            part_headers = (
                f'Content-Disposition: form-data; name="{part.name}"{file}\r\nContent-Type: {part.content_type}'
            )
            body += f"--{boundary}\r\n{part_headers}\r\n\r\n".encode() + part.content + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        await self._request(method, path, body, f"multipart/form-data; boundary={boundary}")

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request with a JSON body and return the JSON of the response."""
        encoded = None if body is None else json.dumps(body).encode()
        return await self._request(method, path, encoded, "application/json")

    async def _request(self, method: str, path: str, body: bytes | None, content_type: str) -> Any:
        base, _, query = path.partition("?")
        answer = await self.http.request(
            HttpRequest(
                method,
                f"/admin{base}",
                query=dict(parse_qsl(query)),
                headers={"Content-Type": content_type},  # Pulsar requires it even without a body
                body=body,
                timeout=TIMEOUT,
            )
        )
        if answer.status >= 300:
            raise PulsarError(answer.status, _reason(answer.body))
        try:
            return json.loads(answer.body) if answer.body else None
        except ValueError as error:
            raise NotPulsarError(f"/admin{base} is not JSON") from error


def join_path(base: str, *parts: str) -> str:
    """Return `base` with the parts appended, each one quoted for a URL."""
    return "/".join([base, *(quote(part, safe="") for part in parts)])


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["reason"])
    except (ValueError, LookupError, TypeError):
        return ""  # the error page of a web server


class HttpClients:
    """A pool of HTTP clients: one for each pair of URL and token."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str | None], HttpTransport] = {}

    def __call__(self, url: str, token: str | None = None) -> HttpTransport:
        """Return the client for a URL and token. Raises ValueError for an invalid URL."""
        if (url, token) not in self._open:
            self._open[url, token] = HttpTransport(Cluster(url), StaticCredentials.token(token) if token else None)
        return self._open[url, token]

    async def fetch(self, url: str) -> bytes:
        """Return the content of an http(s) URL. Raises PulsarError, OSError, ValueError."""
        address = urlsplit(url)
        client = self(f"{address.scheme}://{address.netloc}")
        query = dict(parse_qsl(address.query)) or None
        answer = await client.request(HttpRequest("GET", address.path or "/", query=query, timeout=TIMEOUT))
        if answer.status >= 300:
            raise PulsarError(answer.status, f"{url} answers {answer.status}")
        return answer.body

    async def close(self) -> None:
        for client in self._open.values():
            await client.close()
