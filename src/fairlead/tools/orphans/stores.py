"""Where evidence is kept: a private file, or a ConfigMap in the downstream cluster."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import ApiError, NotFound, UnknownOutcome, UserError
from fairlead.api.files import write_private
from fairlead.api.objects import Object
from fairlead.client.client import Client
from fairlead.tools.orphans.evidence import Evidence, Unusable

# A ConfigMap holds a mebibyte in all. What does not fit is not recorded: its grace begins anew after a restart.
MOST = 900_000


class EvidenceError(UserError):
    """Evidence that cannot be read or kept. One line, with the remedy."""


class NotKept(EvidenceError):
    """Evidence that is what it should be, and cannot be kept now."""


class Store(Protocol):
    """Reads evidence once, and keeps it."""

    async def load(self, evidence: Evidence) -> None: ...

    async def save(self, evidence: Evidence) -> None:
        """Keep it. Raises NotKept when it cannot be kept: then nothing may rely on it."""


class InFile:
    """A file that only its owner can read, replaced whole. Use it inside `locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other runs away: two would overwrite what each other saw."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise EvidenceError(
                f"{self.path}: cannot be kept ({error.strerror}): name a file with --evidence"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise NotKept(f"{self.path}: another run is using it: wait until it has ended") from None
        try:
            yield
        finally:
            os.close(handle)

    async def load(self, evidence: Evidence) -> None:
        try:
            evidence.read(json.loads(self.path.read_text()))
        except FileNotFoundError:
            return
        except OSError as error:
            raise EvidenceError(
                f"{self.path}: cannot be read ({error.strerror}): name another with --evidence"
            ) from None
        except (Unusable, ValueError, RecursionError) as error:
            why = error if isinstance(error, Unusable) else "it is not JSON"
            raise EvidenceError(
                f"{self.path}: {why}: name another file with --evidence, or move it away, and every grace begins anew"
            ) from None

    async def save(self, evidence: Evidence) -> None:
        try:
            write_private(self.path, json.dumps(evidence.to_json(), indent=1) + "\n")
        except OSError as error:
            raise NotKept(f"{self.path}: cannot be written ({error.strerror}): name another with --evidence") from None


class InConfigMap:
    """A ConfigMap downstream, written only when something changed, and only over what this process last saw."""

    def __init__(self, client: Client, namespace: str, name: str = "fairlead-orphans") -> None:
        self._client = client
        self._namespace, self._name = namespace, name
        self._held: Object | None = None

    async def load(self, evidence: Evidence) -> None:
        try:
            self._held = await self._client.get(ConfigMap, self._name, self._namespace)
        except NotFound:
            self._held = None
            return
        except (ApiError, OSError) as error:
            raise EvidenceError(f"{self}: cannot be read: {error}") from None
        try:
            evidence.read(json.loads((self._held.get("data") or {}).get("evidence.json") or "null"))
        except (Unusable, ValueError, RecursionError) as error:
            why = error if isinstance(error, Unusable) else "it is not JSON"
            raise EvidenceError(f"{self}: {why}: delete it, and every grace begins anew") from None

    async def save(self, evidence: Evidence) -> None:
        text = _within(evidence)
        if self._held is not None and (self._held.get("data") or {}).get("evidence.json") == text:
            return
        try:
            if self._held is None:
                made = ConfigMap(self._name, self._namespace, data={"evidence.json": text})
                self._held = await self._client.create(made)
            else:
                self._held = await self._client.replace(Object({**self._held, "data": {"evidence.json": text}}))
        except (ApiError, UnknownOutcome, OSError) as error:
            raise NotKept(f"{self}: cannot be written: {error}") from None

    def __str__(self) -> str:
        return f"ConfigMap {self._namespace}/{self._name}"


def _within(evidence: Evidence) -> str:
    """The evidence as JSON, without the youngest absences if it were too long."""
    content = evidence.to_json()
    text = json.dumps(content, separators=(",", ":"))
    if len(text) <= MOST:
        return text
    entries = [(entry[-1], name, entry) for name, said in content["clusters"].items() for entry in said["absent"]]
    room = MOST - (len(text) - sum(len(json.dumps(entry, separators=(",", ":"))) + 1 for _, _, entry in entries))
    for said in content["clusters"].values():
        said["absent"] = []
    for _, name, entry in sorted(entries):
        room -= len(json.dumps(entry, separators=(",", ":"))) + 1
        if room < 0:
            break
        content["clusters"][name]["absent"].append(entry)
    return json.dumps(content, separators=(",", ":"))
