"""Who we are to a server: tokens and certificates, read again when they rotate. None of it is ever printed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from fairlead.api.errors import UserError
from fairlead.api.world import World
from fairlead.client.transport import NotSent


class CredentialsError(NotSent, UserError):
    """Credentials cannot be had, so nothing was sent. One line, with the remedy."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one request presents. The secrets stay out of `repr`."""

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)  # PEM
    key: bytes | None = field(default=None, repr=False)  # PEM
    impersonate: tuple[tuple[str, str], ...] = ()  # headers; a name may come twice

    @classmethod
    def bearer(cls, token: str) -> "Identity":
        return cls(authorization=f"Bearer {token}")


class Credentials(Protocol):
    """Where identities come from."""

    async def identity(self) -> Identity:
        """What to present now. Raises CredentialsError."""

    def on_unauthorized(self, identity: Identity) -> None:
        """The server answered 401 to this one: do not give it again if there is a way to get another."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """An identity that never changes; `StaticCredentials()` is nobody."""

    present: Identity = field(default_factory=Identity)

    @classmethod
    def token(cls, token: str) -> "StaticCredentials":
        return cls(Identity.bearer(token))

    async def identity(self) -> Identity:
        return self.present

    def on_unauthorized(self, identity: Identity) -> None:
        pass


class RotatedFile:
    """A small file that someone rotates: read again when what we know of it is ten seconds old.

    A kubelet rotates tokens at 80 % of a lifetime of at least ten minutes, so that is never too late.
    """

    FRESH = 10.0

    def __init__(self, path: Path, world: World) -> None:
        self.path = path
        self._world = world
        self._content: bytes | None = None
        self._read_at = 0.0

    def content(self) -> bytes:
        now = self._world.clock.monotonic()
        if self._content is None or now - self._read_at >= self.FRESH:
            try:
                self._content, self._read_at = self.path.read_bytes(), now
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise CredentialsError(f"cannot read {self.path} ({reason}): put the credentials there") from error
        return self._content

    def forget(self) -> None:
        self._content = None


class TokenFileCredentials:
    """A bearer token in a file."""

    def __init__(self, path: Path, world: World) -> None:
        self._file = RotatedFile(path, world)

    async def identity(self) -> Identity:
        token = self._file.content().decode(errors="replace").strip()
        if not token or not token.isascii() or not token.isprintable():
            raise CredentialsError(f"{self._file.path} holds no bearer token: write one into it")
        return Identity.bearer(token)

    def on_unauthorized(self, identity: Identity) -> None:
        self._file.forget()


class CertificateCredentials:
    """Other credentials plus a client certificate, asked for anew at each request."""

    def __init__(self, inner: Credentials, certificate: Callable[[], bytes], key: Callable[[], bytes]) -> None:
        self._inner = inner
        self._certificate = certificate
        self._key = key

    async def identity(self) -> Identity:
        return replace(await self._inner.identity(), certificate=self._certificate(), key=self._key())

    def on_unauthorized(self, identity: Identity) -> None:
        self._inner.on_unauthorized(identity)


class ImpersonatingCredentials:
    """Other credentials, acting as someone else: never without these headers."""

    def __init__(self, inner: Credentials, headers: tuple[tuple[str, str], ...]) -> None:
        self._inner = inner
        self._headers = headers

    async def identity(self) -> Identity:
        return replace(await self._inner.identity(), impersonate=self._headers)

    def on_unauthorized(self, identity: Identity) -> None:
        self._inner.on_unauthorized(identity)
