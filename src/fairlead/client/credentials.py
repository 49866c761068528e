"""Who we are to a server: tokens and certificates, read again when they rotate. None of it is ever printed."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fairlead.api.world import World


class CredentialsError(Exception):
    """Credentials cannot be had. One line, with the remedy."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one request presents. The secrets stay out of `repr`."""

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = None  # PEM
    key: bytes | None = field(default=None, repr=False)  # PEM


class Credentials(Protocol):
    """Where identities come from."""

    async def identity(self) -> Identity:
        """What to present now. Raises CredentialsError."""

    def refused(self, identity: Identity) -> None:
        """The server answered 401 to this one: do not give it again if there is a way to get another."""


@dataclass(frozen=True, slots=True)
class Static:
    """An identity that never changes; `Static()` is nobody."""

    present: Identity = field(default_factory=Identity)

    @classmethod
    def token(cls, token: str) -> "Static":
        return cls(Identity(authorization=f"Bearer {token}"))

    async def identity(self) -> Identity:
        return self.present

    def refused(self, identity: Identity) -> None:
        pass


class TokenFile:
    """A bearer token in a file that someone rotates."""

    # A kubelet rotates at 80 % of a lifetime of at least ten minutes; looking every ten seconds is never too late.
    FRESH = 10.0

    def __init__(self, path: Path, world: World) -> None:
        self._path = path
        self._world = world
        self._identity: Identity | None = None
        self._read_at = 0.0

    async def identity(self) -> Identity:
        now = self._world.clock.monotonic()
        if self._identity is None or now - self._read_at >= self.FRESH:
            self._identity, self._read_at = self._read(), now
        return self._identity

    def refused(self, identity: Identity) -> None:
        if self._identity is identity:
            self._identity = None

    def _read(self) -> Identity:
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsError(f"cannot read the token file {self._path} ({error}): is it mounted?") from error
        if not token or not token.isprintable():
            raise CredentialsError(f"the token file {self._path} holds no token: write one into it")
        return Identity(authorization=f"Bearer {token}")
