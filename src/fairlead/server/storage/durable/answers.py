"""Answers that wait for the disk: nobody is told of what could still be lost."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import status_error
from fairlead.server.http import representations
from fairlead.server.http.messages import AnyResponse, Request, StreamingResponse

if TYPE_CHECKING:
    from fairlead.server.app import Server
    from fairlead.server.storage.durable.journal import Journal


class NotStored(Exception):
    """What was written could not be kept, and was undone."""


async def answer(server: "Server", journal: "Journal", request: Request) -> AnyResponse:
    """Answer one request once the store is on the disk as far as the answer can tell of it.

    A read that saw what then had to be undone is made again; a write is refused with a 500.
    """
    while True:
        made = server.respond(request)
        try:
            await journal.durable(server.store.version)
        except NotStored as error:
            if request.method in ("GET", "HEAD"):
                continue
            text = f"the write could not be stored and was not made: {error}"
            details = {"causes": [{"message": text}]}
            refused = status_error(500, "InternalError", f"Internal error occurred: {text}", details)
            return representations.error_response(request, refused)
        if isinstance(made, StreamingResponse):
            made.chunks = _chunks(server, journal, made.chunks)
        return made


async def _chunks(server: "Server", journal: "Journal", chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks of a stream as they become durable; it ends when what they tell of was undone."""
    undone = server.store.undone
    try:
        async for chunk in chunks:
            try:
                await journal.durable(server.store.version)
            except NotStored:
                return
            if undone != server.store.undone:
                return
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
