"""Parse YAML that a person wrote, with errors of one line."""

from typing import Any


class InvalidYaml(ValueError):
    """The text is not YAML. The message names the line: `not YAML at line 3: did not find expected key`."""


def parse_all(text: str | bytes) -> list[Any]:
    """Return the documents of the text without the empty ones, as plain data. Raises InvalidYaml."""
    import yaml

    try:
        return [document for document in yaml.load_all(text, _loader()) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        lines = (
            text.count("\n") if isinstance(text, str) else text.count(b"\n")
        )  # the end of the text counts as one more line
        line = f" at line {min(mark.line, lines) + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise InvalidYaml(f"not YAML{line}" + (f": {problem}" if problem else "")) from error
    except UnicodeDecodeError as error:
        raise InvalidYaml("not YAML: not UTF-8") from error
    except RecursionError as error:
        raise InvalidYaml("not YAML that can be read: nested too deep") from error


def parse_one(text: str | bytes) -> Any:
    """Return the only document of the text, or None if it is empty. Raises InvalidYaml."""
    documents = parse_all(text)
    if len(documents) > 1:
        raise InvalidYaml(f"expected one YAML document, found {len(documents)}")
    return documents[0] if documents else None


def _loader() -> Any:
    import yaml

    return getattr(
        yaml, "CSafeLoader", yaml.SafeLoader
    )  # the loader of libyaml is ten times as fast, if it is installed
