"""Paths in volumes and the modes of files."""

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError


def mode(field: str, bits: int) -> list[FieldError]:
    told = "must be a number between 0 and 0777 (octal), both inclusive"
    return [] if 0 <= bits <= 0o777 else [field_errors.invalid(field, bits, told)]


def without_backsteps(field: str, path: str) -> list[FieldError]:
    return [field_errors.invalid(field, path, "must not contain '..'")] if ".." in path.split("/") else []


def below(field: str, path: str) -> list[FieldError]:
    """A path that stays below where it starts."""
    found = [field_errors.invalid(field, path, "must be a relative path")] if path.startswith("/") else []
    return found + without_backsteps(field, path)


def file_below(field: str, path: str) -> list[FieldError]:
    """One of a file that a volume makes: names that begin with two dots are the volume's own."""
    reserved = path.startswith("..") and path != ".." and not path.startswith("../")
    return below(field, path) + ([field_errors.invalid(field, path, "must not start with '..'")] if reserved else [])


def absolute(field: str, path: str) -> list[FieldError]:
    return [] if path.startswith("/") else [field_errors.invalid(field, path, "must be an absolute path")]
