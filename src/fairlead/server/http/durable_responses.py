"""Responses that wait for the disk, so that a client never sees a change that could still be lost."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import status_error
from fairlead.server.http import representations
from fairlead.server.http.messages import AnyResponse, Request, StreamingResponse
from fairlead.server.storage.durable.journal import Journal, NotStored

if TYPE_CHECKING:
    from fairlead.server.app import Server


async def respond_durably(server: "Server", journal: Journal, request: Request) -> AnyResponse:
    """Return the response to a request when everything that it can show is on disk.

    If the disk fails, the changes are undone. Then a read is repeated, and a write gets a 500.
    """
    while True:
        response = server.respond(request)
        try:
            await journal.durable(server.store.version)
        except NotStored as error:
            if request.method in ("GET", "HEAD"):
                continue
            text = f"the write could not be stored and was not made: {error}"
            details = {"causes": [{"message": text}]}
            failed = status_error(500, "InternalError", f"Internal error occurred: {text}", details)
            return representations.error_response(request, failed)
        if isinstance(response, StreamingResponse):
            response.chunks = _durable_chunks(server, journal, response.chunks)
        return response


async def _durable_chunks(server: "Server", journal: Journal, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield each chunk of a stream when its changes are on disk. End the stream if changes were undone."""
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
