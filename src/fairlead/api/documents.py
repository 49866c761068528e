"""Parse YAML that a person wrote. Every error message is one line."""

from typing import Any


class InvalidYaml(ValueError):
    """The error for text that is not YAML, such as `not YAML at line 3: did not find expected key`."""


def parse_all(text: str | bytes) -> list[Any]:
    """Parse YAML text and return its documents as dicts, lists and scalars. Empty documents are left out.

    Raises InvalidYaml.
    """
    import yaml

    try:
        return [document for document in yaml.load_all(text, _get_loader()) if document is not None]
    except yaml.YAMLError as error:
        position = getattr(error, "problem_mark", None)
        lines = (
            text.count("\n") if isinstance(text, str) else text.count(b"\n")
        )  # the end of the text counts as one more line
        line = f" at line {min(position.line, lines) + 1}" if position else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise InvalidYaml(f"not YAML{line}" + (f": {problem}" if problem else "")) from error
    except UnicodeDecodeError as error:
        raise InvalidYaml("not YAML: not UTF-8") from error
    except RecursionError as error:
        raise InvalidYaml("not YAML that can be read: nested too deep") from error


def parse_one(text: str | bytes) -> Any:
    """Parse YAML text that has at most one document, and return the document, or None if the text is empty.

    Raises InvalidYaml, also if the text has several documents.
    """
    documents = parse_all(text)
    if len(documents) > 1:
        raise InvalidYaml(f"expected one YAML document, found {len(documents)}")
    return documents[0] if documents else None


def _get_loader() -> Any:
    import yaml

    return getattr(
        yaml, "CSafeLoader", yaml.SafeLoader
    )  # the loader of libyaml is ten times as fast, if it is installed
