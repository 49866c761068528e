"""Calls of webhooks, and how a request waits for them.

A write runs without interruption until it is stored, so it cannot await a webhook. If it needs an answer that is not
known yet, it raises `WebhookCallNeeded`. The server then makes the call, remembers the answer on the request, and runs
the request again from the start. Nothing was stored before, so the second run gets to the same point and continues. If
another write changed the object meanwhile, the second run asks another question and waits again. A real server does the
same: it calls its webhooks again when it retries an update with the newest object.
"""

import asyncio
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

Answers = dict[Hashable, "WebhookReply | WebhookFailed"]


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """The Service that a webhook configuration names. `cluster_ip` is "" if the Service does not exist."""

    namespace: str
    name: str
    port: int
    cluster_ip: str


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One POST to a webhook."""

    url: str  # without a query; of a service: https://NAME.NAMESPACE.svc:PORT/PATH
    service: ServiceTarget | None
    ca_bundle: bytes  # PEM; b"" for the certificates that the system trusts
    body: bytes
    timeout: int  # seconds
    user_agent: str

    @property
    def target(self) -> str:
        """The URL with the query that tells the webhook how much time it has."""
        return f"{self.url}?timeout={self.timeout}s"


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """The HTTP response of a webhook."""

    status: int
    content_type: str
    body: bytes


class WebhookFailed(Exception):
    """Raised if a webhook could not be called, or if its response is unusable. The message is that of Go's client."""


class WebhookCaller(Protocol):
    """Calls webhooks. A server gets its caller from outside."""

    async def call(self, call: WebhookCall) -> WebhookReply:
        """Return the response of a webhook. Raises WebhookFailed if there is none.

        The server ends the call after its timeout.
        """

    def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that a request waits for. `key` identifies the question, so that the same question is asked once."""

    key: Hashable
    call: WebhookCall


class WebhookCallNeeded(Exception):
    """Raised by a request that cannot continue without the answers of webhooks."""

    def __init__(self, calls: Sequence[PendingCall]) -> None:
        super().__init__("the request waits for a webhook")
        self.calls = calls


@dataclass(slots=True)
class RequestMemory:
    """What a request remembers between its runs: answers of webhooks, and values that were generated for it."""

    answers: Answers = field(default_factory=dict)
    values: dict[Hashable, Any] = field(default_factory=dict)

    async def make_calls(self, caller: WebhookCaller, needed: WebhookCallNeeded) -> None:
        """Make the calls at the same time, and remember the answers."""
        pending = [call for call in needed.calls if call.key not in self.answers]
        replies = await asyncio.gather(*(_call(caller, each.call) for each in pending))
        self.answers.update(zip((each.key for each in pending), replies, strict=True))


_memory: ContextVar[RequestMemory] = ContextVar("memory")


@contextmanager
def use_memory(memory: RequestMemory) -> Iterator[None]:
    """Let `current_memory` return this memory inside the block."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def current_memory() -> RequestMemory:
    """Return the memory of the request that is running now, or an empty one outside of requests."""
    return _memory.get(None) or RequestMemory()


async def _call(caller: WebhookCaller, call: WebhookCall) -> WebhookReply | WebhookFailed:
    try:
        async with asyncio.timeout(call.timeout):
            return await caller.call(call)
    except TimeoutError:
        return WebhookFailed(f'Post "{call.target}": context deadline exceeded')
    except WebhookFailed as error:
        return error
