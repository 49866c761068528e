"""Base64 as Go's decoder reads it: line breaks are allowed, and an error names the byte offset."""

import base64
import binascii


def canonicalize(text: str) -> str:
    """Return base64 text without line breaks. Raises ValueError with Go's message if the text is not base64."""
    one_line = text.replace("\n", "").replace("\r", "")
    try:
        if len(one_line) % 4:
            raise ValueError
        return base64.b64encode(base64.b64decode(one_line, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise ValueError(f"illegal base64 data at input byte {_find_error_offset(text)}") from None


def _find_error_offset(text: str) -> int:
    """Return the byte offset at which Go's base64 decoder reports an error."""
    at, quantum = 0, 0
    for at, letter in enumerate(text):
        if letter in "\r\n":
            continue
        if letter == "=":
            if quantum < 2:
                return at
            if quantum == 2:
                following_text = text[at + 1 :].lstrip("\r\n")
                if not following_text:
                    return len(text)
                if following_text[0] != "=":
                    return at + 1
                at += 1
            trailing = text[at + 1 :].lstrip("\r\n")
            return len(text) - len(trailing)
        if not (letter.isascii() and (letter.isalnum() or letter in "+/")):
            return at
        quantum = (quantum + 1) % 4
    return len(text) - quantum
