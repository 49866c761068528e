"""Pulsar's admin REST API, as far as this operator speaks it, over an HTTP client that is handed in."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlsplit

from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import Static
from fairlead.client.http import HttpTransport
from fairlead.client.transport import Response

# A broker that loads a namespace takes some seconds; one that takes half a minute is not well.
TIMEOUT = 30.0


class Http(Protocol):
    """One HTTP server, as far as it is used here: a fairlead transport is one."""

    async def request(self, request: HttpRequest) -> Response: ...


class NotPulsar(Exception):
    """Somebody answered, in a way that Pulsar's admin API does not."""


class Refused(Exception):
    """Pulsar answered, and not what was hoped for; `str()` is its own reason."""

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
    """One Pulsar. Paths are those below `/admin`, quoted, with their query.

    Raises Refused for every answer that is not a success, NotPulsar for one that no Pulsar gives, and OSError (or
    TimeoutError) when there was none. Follows no redirect: a broker that sends elsewhere would get the token sent there
    too.
    """

    http: Http

    async def clusters(self) -> list[str]:
        """The names of the clusters that it knows: what every Pulsar answers, and so a look whether this is one."""
        found = await self.get("/v2/clusters")
        if not isinstance(found, list):
            raise NotPulsar("/admin/v2/clusters is not there" if found is None else "/admin/v2/clusters is no list")
        return found

    async def get(self, path: str) -> Any:
        """What is there, or None."""
        try:
            return await self.call("GET", path)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    async def put(self, path: str, body: Any = None) -> bool:
        """Make it: False if it was there already, and is as it was."""
        try:
            await self.call("PUT", path, body)
        except Refused as error:
            if error.status == 409:
                return False
            raise
        return True

    async def post(self, path: str, body: Any = None) -> None:
        await self.call("POST", path, body)

    async def delete(self, path: str, *, unset: int = 404, seen_at: str | None = None) -> None:
        """Away with it. Already gone is success: a 404, the status `unset`, or a failure after which nothing is there
        (packages answer 500): looked for at `seen_at`, `path` if not given."""
        try:
            await self.call("DELETE", path)
        except Refused as error:
            if error.status in (404, unset):
                return
            if error.status < 500 or await self.get(seen_at or path) is not None:
                raise

    async def form(self, method: str, path: str, parts: Sequence[Part]) -> None:
        """Send a multipart form, as packages, functions, sinks and sources want it."""
        digest = hashlib.sha256(b"\0".join(part.content for part in parts)).hexdigest()
        boundary, body = f"fairlead-{digest}", b""
        for part in parts:
            file = '; filename="file"' if part.content_type == "application/octet-stream" else ""
            head = f'Content-Disposition: form-data; name="{part.name}"{file}\r\nContent-Type: {part.content_type}'
            body += f"--{boundary}\r\n{head}\r\n\r\n".encode() + part.content + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        await self._request(method, path, body, f"multipart/form-data; boundary={boundary}")

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request with a JSON body; the answer's JSON."""
        encoded = None if body is None else json.dumps(body).encode()
        return await self._request(method, path, encoded, "application/json")

    async def _request(self, method: str, path: str, body: bytes | None, content_type: str) -> Any:
        where, _, query = path.partition("?")
        answer = await self.http.request(
            HttpRequest(
                method,
                f"/admin{where}",
                query=dict(parse_qsl(query)),
                headers={"Content-Type": content_type},  # Pulsar wants one where there is no body, too
                body=body,
                timeout=TIMEOUT,
            )
        )
        if answer.status >= 300:
            raise Refused(answer.status, _reason(answer.body))
        try:
            return json.loads(answer.body) if answer.body else None
        except ValueError as error:
            raise NotPulsar(f"/admin{where} is not JSON") from error


def at(base: str, *parts: str) -> str:
    """A path with each part quoted, whatever is in it."""
    return "/".join([base, *(quote(part, safe="") for part in parts)])


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["reason"])
    except (ValueError, LookupError, TypeError):
        return ""  # a web server's error page says nothing that the status does not


class Doors:
    """HTTP clients, one for each address and token, kept as long as the operator runs."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str | None], HttpTransport] = {}

    def __call__(self, url: str, token: str | None = None) -> HttpTransport:
        """Raises ValueError when that is no address."""
        if (url, token) not in self._open:
            self._open[url, token] = HttpTransport(Cluster(url), Static.token(token) if token else None)
        return self._open[url, token]

    async def fetch(self, url: str) -> bytes:
        """The content at an http(s) address. Raises Refused, OSError, ValueError."""
        address = urlsplit(url)
        door = self(f"{address.scheme}://{address.netloc}")
        query = dict(parse_qsl(address.query)) or None
        answer = await door.request(HttpRequest("GET", address.path or "/", query=query, timeout=TIMEOUT))
        if answer.status >= 300:
            raise Refused(answer.status, f"{url} answers {answer.status}")
        return answer.body

    async def close(self) -> None:
        for door in self._open.values():
            await door.close()
