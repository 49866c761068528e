"""Responses that wait until the disk has every change they show, so that no client sees a change that can be lost."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from fairlead.server.errors.statuses import internal_error_message
from fairlead.server.http import representations
from fairlead.server.http.messages import AnyResponse, Request, StreamingResponse
from fairlead.server.storage.durable.journal import DurableJournal, WriteNotStored

if TYPE_CHECKING:
    from fairlead.server.app import Server


async def respond_durably(server: "Server", journal: DurableJournal, request: Request) -> AnyResponse:
    """Return the response to a request after all changes that the response may show are on disk.

    If a change could not be stored, a read is repeated, and a write gets a 500.
    """
    while True:
        response = await server.respond_or_wait(request)
        try:
            await journal.wait_until_stored(server.store.version)
        except WriteNotStored as error:
            if request.method in ("GET", "HEAD"):
                continue
            rejection = internal_error_message(f"the write could not be stored and was undone: {error}")
            return representations.error_response(request, rejection)
        if isinstance(response, StreamingResponse):
            response.chunks = _stream_durably(server, journal, response.chunks)
        return response


async def _stream_durably(
    server: "Server", journal: DurableJournal, chunks: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Yield the chunks of a watch after the changes in them are on disk. End the stream if changes were undone."""
    undo_count = server.store.undo_count
    try:
        async for chunk in chunks:
            try:
                await journal.wait_until_stored(server.store.version)
            except WriteNotStored:
                return
            if undo_count != server.store.undo_count:
                return
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
