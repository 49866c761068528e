"""HTML from Python values. Text is escaped unless it was built by this module."""

from html import escape

from fairlead.api.text import printable

_VOID = frozenset({"br", "input", "link", "meta"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = object
"""Html is inserted as it is; None is left out; anything else becomes escaped text."""


def text(value: object) -> Html:
    """Return the value as escaped text. Control characters, and those that change the direction, become spaces."""
    return value if isinstance(value, Html) else Html(escape(printable(str(value))))


def tag(name: str, /, *children: Child, **attributes: object) -> Html:
    """Return an element. `class_` is the attribute class, `data_x` is data-x. A None or False attribute is left out."""
    html_parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        html_parts.append(f" {attribute}" if value is True else f' {attribute}="{text(value)}"')
    html_parts.append(">")
    if name in _VOID:
        return Html("".join(html_parts))
    html_parts += [text(child) for child in children if child is not None]
    html_parts.append(f"</{name}>")
    return Html("".join(html_parts))


def join(*children: Child) -> Html:
    """Return the children without an element around them."""
    return Html("".join(text(child) for child in children if child is not None))
