"""Credentials for an API server: tokens and client certificates. Rotated files are read again."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from fairlead.api.errors import UserError
from fairlead.api.world import World
from fairlead.client.transport import NotSent


class CredentialsError(NotSent, UserError):
    """The credentials for a request could not be read, so nothing was sent. The message is one line with the fix."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The credentials that one request sends: a token, a client certificate, impersonation headers.

    The secrets do not appear in `repr`.
    """

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)  # PEM
    key: bytes | None = field(default=None, repr=False)  # PEM
    impersonate: tuple[tuple[str, str], ...] = ()  # headers; a name may occur twice

    @classmethod
    def bearer(cls, token: str) -> "Identity":
        return cls(authorization=f"Bearer {token}")


class Credentials(Protocol):
    """A source of credentials for requests, such as a token file or an exec plugin."""

    async def identity(self) -> Identity:
        """Return the credentials for the next request. Raises CredentialsError."""

    def on_unauthorized(self, identity: Identity) -> None:
        """Forget `identity`, with which the server answered 401, so that the next request gets new credentials."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """Credentials that never change. `StaticCredentials()` sends anonymous requests."""

    present: Identity = field(default_factory=Identity)

    @classmethod
    def token(cls, token: str) -> "StaticCredentials":
        return cls(Identity.bearer(token))

    async def identity(self) -> Identity:
        return self.present

    def on_unauthorized(self, identity: Identity) -> None:
        pass


class RotatedFile:
    """A small file that another program replaces from time to time. The content is cached for ten seconds.

    A kubelet rotates tokens at 80 % of a lifetime of at least ten minutes, so ten seconds are never too late.
    """

    MAX_AGE = 10.0

    def __init__(self, path: Path, world: World) -> None:
        self.path = path
        self._world = world
        self._content: bytes | None = None
        self._read_at = 0.0

    def read(self) -> bytes:
        now = self._world.clock.monotonic()
        if self._content is None or now - self._read_at >= self.MAX_AGE:
            try:
                self._content, self._read_at = self.path.read_bytes(), now
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise CredentialsError(f"cannot read {self.path} ({reason}): put the credentials there") from error
        return self._content

    def forget(self) -> None:
        self._content = None


class TokenFileCredentials:
    """Credentials with the bearer token in a file."""

    def __init__(self, path: Path, world: World) -> None:
        self._file = RotatedFile(path, world)

    async def identity(self) -> Identity:
        token = self._file.read().decode(errors="replace").strip()
        if not token or not token.isascii() or not token.isprintable():
            raise CredentialsError(f"{self._file.path} contains no bearer token: write one into it")
        return Identity.bearer(token)

    def on_unauthorized(self, identity: Identity) -> None:
        self._file.forget()


class CertificateCredentials:
    """The credentials of `inner` with a client certificate, which is read again for each request."""

    def __init__(self, inner: Credentials, certificate: Callable[[], bytes], key: Callable[[], bytes]) -> None:
        self._inner = inner
        self._certificate = certificate
        self._key = key

    async def identity(self) -> Identity:
        return replace(await self._inner.identity(), certificate=self._certificate(), key=self._key())

    def on_unauthorized(self, identity: Identity) -> None:
        self._inner.on_unauthorized(identity)


class ImpersonatingCredentials:
    """The credentials of `inner` with impersonation headers (Impersonate-User and so on)."""

    def __init__(self, inner: Credentials, headers: tuple[tuple[str, str], ...]) -> None:
        self._inner = inner
        self._headers = headers

    async def identity(self) -> Identity:
        return replace(await self._inner.identity(), impersonate=self._headers)

    def on_unauthorized(self, identity: Identity) -> None:
        self._inner.on_unauthorized(identity)
