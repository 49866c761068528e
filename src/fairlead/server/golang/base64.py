"""Base64 as Go's decoder takes it: lines may be broken, and an error says where."""

import base64
import binascii


def canonical(text: str) -> str:
    """The text in one line. Raises ValueError, in Go's words, for what is no base64."""
    plain = text.replace("\n", "").replace("\r", "")
    try:
        if len(plain) % 4:
            raise ValueError
        return base64.b64encode(base64.b64decode(plain, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise ValueError(f"illegal base64 data at input byte {_wrong_at(text)}") from None


def _wrong_at(text: str) -> int:
    """The offset at which Go's decoder gives up."""
    at, quantum = 0, 0
    for at, letter in enumerate(text):
        if letter in "\r\n":
            continue
        if letter == "=":
            if quantum < 2:
                return at
            if quantum == 2:
                rest = text[at + 1 :].lstrip("\r\n")
                if not rest:
                    return len(text)
                if rest[0] != "=":
                    return at + 1
                at += 1
            left = text[at + 1 :].lstrip("\r\n")
            return len(text) - len(left)
        if not (letter.isascii() and (letter.isalnum() or letter in "+/")):
            return at
        quantum = (quantum + 1) % 4
    return len(text) - quantum
