"""What Go's scanner says of a text that is no JSON: the byte that it stops at, and what it was looking for there."""

from fairlead.server.errors.field_errors import quote_go

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {ord("t"): "true", ord("f"): "false", ord("n"): "null"}
_BEGIN = "looking for beginning of value"
# In the middle of a number: what may follow, the state that it leads to, and what is said of anything else. An empty
# word says that the number may end here.
_NUMBERS: dict[str, tuple[list[tuple[bytes, str]], str]] = {
    "minus": ([(b"0", "zero"), (b"123456789", "digits")], "in numeric literal"),
    "zero": ([(b".", "point"), (b"eE", "exponent")], ""),
    "digits": ([(_DIGITS, "digits"), (b".", "point"), (b"eE", "exponent")], ""),
    "point": ([(_DIGITS, "fraction")], "after decimal point in numeric literal"),
    "fraction": ([(_DIGITS, "fraction"), (b"eE", "exponent")], ""),
    "exponent": ([(b"+-", "sign"), (_DIGITS, "power")], "in exponent of numeric literal"),
    "sign": ([(_DIGITS, "power")], "in exponent of numeric literal"),
    "power": ([(_DIGITS, "power")], ""),
}


def complaint(text: bytes) -> str:
    """The words of the error; those of a text that breaks off where nothing else is wrong."""
    scanner = _Scanner()
    for byte in text:
        if wrong := scanner.take(byte):
            return f"invalid character {_shown(byte)} {wrong}"
    if wrong := scanner.take(ord(" ")):  # as Go finds out whether a number or a word is over
        return f"invalid character ' ' {wrong}"
    return "unexpected end of JSON input"


class _Scanner:
    def __init__(self) -> None:
        self._state = "value"
        self._open: list[str] = []  # of each map that is open whether a key or a value is due, of each list "["
        self._word = self._left = ""  # a word, and what is left of it, or of the digits of an escape

    def take(self, byte: int) -> str:
        """What was looked for where this byte does not fit; empty where it does."""
        state = self._state
        if state in _NUMBERS:
            following, wrong = _NUMBERS[state]
            for bytes_, then in following:
                if byte in bytes_:
                    self._state = then
                    return ""
            return wrong or self._after_value(byte)
        if state == "string":
            return self._in_string(byte)
        if state == "escape":
            self._state = "hex" if byte == ord("u") else "string"
            self._left = "XXXX"
            return "" if byte in b'u"\\/bfnrt' else "in string escape code"
        if state == "hex":
            self._left = self._left[1:]
            self._state = "hex" if self._left else "string"
            return "" if byte in _HEX else "in \\u hexadecimal character escape"
        if state == "word":
            return self._in_word(byte)
        if byte in _SPACE:
            return ""
        if state == "after":
            return self._after_value(byte)
        return self._in_key(byte) if state in ("key", "first key") else self._begin(byte)

    def _begin(self, byte: int) -> str:
        if byte == ord("]") and self._state == "first item":
            self._open.pop()
            self._state = "after"
        elif byte in b"{[":
            self._open.append("key" if byte == ord("{") else "[")
            self._state = "first key" if byte == ord("{") else "first item"
        elif byte == ord('"'):
            self._state = "string"
        elif byte in b"-0" or byte in _DIGITS:
            self._state = {ord("-"): "minus", ord("0"): "zero"}.get(byte, "digits")
        elif byte in _LITERALS:
            self._word = _LITERALS[byte]
            self._state, self._left = "word", self._word[1:]
        else:
            return _BEGIN
        return ""

    def _in_key(self, byte: int) -> str:
        if byte == ord('"'):
            self._state = "string"
        elif byte == ord("}") and self._state == "first key":
            self._open.pop()
            self._state = "after"
        else:
            return "looking for beginning of object key string"
        return ""

    def _in_string(self, byte: int) -> str:
        if byte == ord('"'):
            self._state = "after"
        elif byte == ord("\\"):
            self._state = "escape"
        return "in string literal" if byte < 0x20 else ""

    def _in_word(self, byte: int) -> str:
        wanted, self._left = self._left[0], self._left[1:]
        self._state = "word" if self._left else "after"
        return "" if byte == ord(wanted) else f"in literal {self._word} (expecting {_shown(ord(wanted))})"

    def _after_value(self, byte: int) -> str:
        self._state = "after"
        if byte in _SPACE:
            return ""
        where = self._open[-1] if self._open else ""
        if not where:
            return "after top-level value"
        if where == "key":
            if byte != ord(":"):
                return "after object key"
            self._open[-1], self._state = "value", "value"
        elif byte == ord(","):
            self._state = "value" if where == "[" else "key"
            self._open[-1] = "[" if where == "[" else "key"
        elif byte == ord("]" if where == "[" else "}"):
            self._open.pop()
        else:
            return "after array element" if where == "[" else "after object key:value pair"
        return ""


def _shown(byte: int) -> str:
    if byte == ord("'"):
        return "'\\''"
    return "'" + quote_go(chr(byte))[1:-1].replace('\\"', '"') + "'"
