"""A webhook that a test serves over TLS on loopback, for the embedded and the real server alike."""

import asyncio
import base64
import json
import ssl
from contextlib import asynccontextmanager

from fairlead.api.world import World
from fairlead.server.http import tls

HOST = "127.0.0.1"


class WebhookServer:
    """Serves webhooks by functions from a review to a response. `reviews` has every review, by path."""

    def __init__(self, port, ca):
        self.port = port
        self.ca = ca
        self.handlers = {}
        self.reviews = []
        self.requests = []  # method, target, headers
        self.connections = 0
        self.tasks = []

    def client_config(self, path="/"):
        return {"url": f"https://{HOST}:{self.port}{path}", "caBundle": base64.b64encode(self.ca).decode()}

    def seen(self, path):
        """Return the reviews that arrived at a path."""
        return [review for at, review in self.reviews if at == path]

    def accept(self, reader, writer):
        self.connections += 1
        self.tasks.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
                method, target, _ = first.split(" ")
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append((method, target, headers))
                writer.write(await self._answer(target.partition("?")[0], body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def _answer(self, path, body):
        review = json.loads(body)
        self.reviews.append((path, review))
        answer = self.handlers[path](review) if path in self.handlers else None
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, bytes):  # a whole HTTP response
            return answer
        code, kind = 200, "application/json"
        if answer is None:
            code, kind, text = 404, "text/plain; charset=utf-8", b"404 page not found\n"
        else:
            text = json.dumps(answer).encode()
        head = f"HTTP/1.1 {code} X\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n\r\n"
        return head.encode() + text


def respond(review, **response):
    """Return the AdmissionReview that answers another one."""
    return {
        "apiVersion": review["apiVersion"],
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], **response},
    }


def patch(review, *operations):
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return respond(review, allowed=True, patchType="JSONPatch", patch=encoded)


@asynccontextmanager
async def serve_webhooks(hosts=(HOST,)):
    """Serve webhooks until the block ends."""
    now = World().clock.now()
    identity = tls.create_identity(list(hosts), now, tls.create_authority(now))
    server = WebhookServer(0, identity.ca)
    listening = await asyncio.start_server(server.accept, HOST, 0, ssl=identity.context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in server.tasks:
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
