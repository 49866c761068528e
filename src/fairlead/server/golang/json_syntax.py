"""Go's error message for invalid JSON: it names the invalid character and what was expected in its place."""

from fairlead.api.gojson import quote_go

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {ord("t"): "true", ord("f"): "false", ord("n"): "null"}
_BEGIN = "looking for beginning of value"
# For each state inside a number: the bytes that may follow with the next state, and the error for any other byte.
# An empty error means that the number may end here.
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


def syntax_error(text: bytes) -> str:
    """Return Go's error message for a text that is not JSON. A text whose bytes are all valid ends too early."""
    scanner = _Scanner()
    for byte in text:
        if error := scanner.read_byte(byte):
            return f"invalid character {_quote_byte(byte)} {error}"
    if error := scanner.read_byte(ord(" ")):  # Go also appends a space to end a number or a literal.
        return f"invalid character ' ' {error}"
    return "unexpected end of JSON input"


class _Scanner:
    """Reads JSON byte by byte, in the states of Go's scanner."""

    def __init__(self) -> None:
        self._state = "value"
        self._open: list[str] = []  # The open containers: "[" for a list, "key" or "value" (what comes next) for a map.
        self._literal = ""  # The literal that is being read: true, false or null.
        self._remaining = ""  # The rest of the literal, or of the digits of an escape.

    def read_byte(self, byte: int) -> str:
        """Read one byte. Return "" if the byte is valid, else the part of Go's message that says what was expected."""
        state = self._state
        if state in _NUMBERS:
            following, error = _NUMBERS[state]
            for allowed, next_state in following:
                if byte in allowed:
                    self._state = next_state
                    return ""
            return error or self._read_after_value(byte)
        if state == "string":
            return self._read_in_string(byte)
        if state == "escape":
            self._state = "hex" if byte == ord("u") else "string"
            self._remaining = "XXXX"
            return "" if byte in b'u"\\/bfnrt' else "in string escape code"
        if state == "hex":
            self._remaining = self._remaining[1:]
            self._state = "hex" if self._remaining else "string"
            return "" if byte in _HEX else "in \\u hexadecimal character escape"
        if state == "literal":
            return self._read_in_literal(byte)
        if byte in _SPACE:
            return ""
        if state == "after":
            return self._read_after_value(byte)
        return self._read_in_key(byte) if state in ("key", "first key") else self._read_value_start(byte)

    def _read_value_start(self, byte: int) -> str:
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
            self._literal = _LITERALS[byte]
            self._state, self._remaining = "literal", self._literal[1:]
        else:
            return _BEGIN
        return ""

    def _read_in_key(self, byte: int) -> str:
        if byte == ord('"'):
            self._state = "string"
        elif byte == ord("}") and self._state == "first key":
            self._open.pop()
            self._state = "after"
        else:
            return "looking for beginning of object key string"
        return ""

    def _read_in_string(self, byte: int) -> str:
        if byte == ord('"'):
            self._state = "after"
        elif byte == ord("\\"):
            self._state = "escape"
        return "in string literal" if byte < 0x20 else ""

    def _read_in_literal(self, byte: int) -> str:
        expected, self._remaining = self._remaining[0], self._remaining[1:]
        self._state = "literal" if self._remaining else "after"
        return "" if byte == ord(expected) else f"in literal {self._literal} (expecting {_quote_byte(ord(expected))})"

    def _read_after_value(self, byte: int) -> str:
        self._state = "after"
        if byte in _SPACE:
            return ""
        innermost = self._open[-1] if self._open else ""
        if not innermost:
            return "after top-level value"
        if innermost == "key":
            if byte != ord(":"):
                return "after object key"
            self._open[-1], self._state = "value", "value"
        elif byte == ord(","):
            self._state = "value" if innermost == "[" else "key"
            self._open[-1] = "[" if innermost == "[" else "key"
        elif byte == ord("]" if innermost == "[" else "}"):
            self._open.pop()
        else:
            return "after array element" if innermost == "[" else "after object key:value pair"
        return ""


def _quote_byte(byte: int) -> str:
    if byte == ord("'"):
        return "'\\''"
    return "'" + quote_go(chr(byte))[1:-1].replace('\\"', '"') + "'"
