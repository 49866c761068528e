"""Static tokens: bearer tokens that are fixed when the server starts, each with its user."""

import csv
import hashlib
from collections.abc import Iterable, Mapping

from fairlead.server.authentication.users import ADMIN, User


def parse_token_file(text: str) -> dict[str, User]:
    """Return the users by token of a `kube-apiserver --token-auth-file`: token,user,uid,"group,group" on each line.

    A line with only a token belongs to an administrator. Raises ValueError that names the line.
    """
    users: dict[str, User] = {}
    for number, row in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), 1):
        if not row or not "".join(row).strip() or row[0].startswith("#"):
            continue
        token = row[0].strip()
        if len(row) == 1 and token:
            users[token] = ADMIN
        elif len(row) < 3 or not token or not row[1]:
            raise ValueError(f"line {number} should be a token alone, or token,user,uid and optionally its groups")
        else:
            groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) > 3 else ()
            users[token] = User(row[1], groups, row[2]).with_authenticated_group()
    return users


class StaticTokens:
    """Finds users by token. Only SHA-256 digests are kept and compared, so memory and timing do not reveal tokens."""

    def __init__(self, tokens: Iterable[str] | Mapping[str, User]) -> None:
        users = tokens if isinstance(tokens, Mapping) else dict.fromkeys(tokens, ADMIN)
        self._users = {_compute_digest(token): user.with_authenticated_group() for token, user in users.items()}

    def __bool__(self) -> bool:
        return bool(self._users)

    def user(self, token: str) -> User | None:
        return self._users.get(_compute_digest(token))


def _compute_digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
