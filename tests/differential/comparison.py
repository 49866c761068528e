"""Compare the responses of a real server and of the embedded one."""

import re
from typing import Any

from recordings import find_differences

Response = dict[str, Any]
Difference = tuple[int, str, Any, Any]  # step, path in the response, value of the real server, of the embedded one
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|<uid\S{1,3}>|resourceVersion\W{1,6}\d+|ResourceVersion[^\d(]*\(\d+\)"
    r"|ResourceVersion in [a-z ]+: \d+"
    r"|in scheme \S+"  # a line of the server's source code, which differs between builds
)


def compare_responses(real: Response, embedded: Response) -> list[tuple[str, Any, Any]]:
    """Return the differences of two responses. Texts are compared only if nothing else differs."""
    without_warnings = [
        {key: value for key, value in response.items() if key != "warnings"} for response in (real, embedded)
    ]
    differences = find_differences(*without_warnings)
    if differences:
        return sorted(differences, key=lambda difference: difference[0] != ".code")  # The code explains the others.
    text_differences = find_differences(extract_texts(real), extract_texts(embedded))
    return [(f"{path} (text)", *values) for path, *values in text_differences]


def is_text_difference(difference: Difference) -> bool:
    """Return whether only a message or a warning differs."""
    return difference[1].endswith("(text)")


def extract_texts(response: Response) -> dict[str, Any]:
    """Return the warnings, the message and the messages of the causes, sorted: a real server's order is random."""
    body = response.get("body")
    texts: dict[str, Any] = {"warnings": sorted(response.get("warnings", ()))}
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure":
        causes = (body.get("details") or {}).get("causes") or []
        texts["causes"] = sorted(_VARYING.sub("_", str(cause.get("message"))) for cause in causes)
        if len(causes) < 2:
            message = _VARYING.sub("_", str(body.get("message")))
            first, separator, error_lines = message.partition("errors:\n")
            texts["message"] = first + separator + "\n".join(sorted(error_lines.split("\n")))
    return texts
