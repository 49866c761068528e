"""The text form of JSON responses: one line that ends with a newline, or indented for people who read it."""

from typing import Final

import msgspec

from fairlead.server.http.messages import AnyResponse, Request, Response

_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")  # the user agents for which a real server indents
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_ALWAYS_INDENTED: Final = ("/", "/version")


def finish_json(request: Request, response: AnyResponse) -> None:
    """Indent the body of a JSON response, or end it with a newline, as a real server does.

    `?pretty` decides, or else the user agent. OpenAPI and OpenID documents and watches stay as they are.
    """
    if not isinstance(response, Response) or not response.headers["Content-Type"].startswith("application/json"):
        return
    if request.path.startswith(("/openapi/", "/.well-known/")):
        return
    if (request.path in _ALWAYS_INDENTED and response.status == 200) or _wants_indentation(request):
        response.body = msgspec.json.format(response.body, indent=2)
    else:
        response.body += b"\n"


def _wants_indentation(request: Request) -> bool:
    if pretty := request.first("pretty"):
        return pretty in _TRUE
    return request.headers.get("user-agent", "").startswith(_PEOPLE)
