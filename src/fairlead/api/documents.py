"""YAML that a person wrote: read fast, and when it is wrong, told in one line."""

from typing import Any


class InvalidYaml(ValueError):
    """Why a text is no YAML, and at which line: `not YAML at line 3: did not find expected key`."""


def parse_all(text: str | bytes) -> list[Any]:
    """Its documents, empty ones left out. Plain data only: no tag makes an object. Raises NotYaml."""
    import yaml

    try:
        return [one for one in yaml.load_all(text, _loader()) if one is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        lines = text.count("\n") if isinstance(text, str) else text.count(b"\n")  # the end counts as one more
        line = f" at line {min(mark.line, lines) + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise InvalidYaml(f"not YAML{line}" + (f": {problem}" if problem else "")) from error
    except UnicodeDecodeError as error:
        raise InvalidYaml("not YAML: not UTF-8") from error
    except RecursionError as error:
        raise InvalidYaml("not YAML that can be read: nested too deep") from error


def parse_one(text: str | bytes) -> Any:
    """Its only document; None when there is none. Raises NotYaml."""
    documents = parse_all(text)
    if len(documents) > 1:
        raise InvalidYaml(f"one YAML document is wanted, not {len(documents)}")
    return documents[0] if documents else None


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times as fast, where it was built
