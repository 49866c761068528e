"""Store evidence in a private file, or in a ConfigMap of the downstream cluster."""

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
from fairlead.tools.orphans.evidence import Evidence, UnusableEvidence

MAX_EVIDENCE_BYTES = 900_000
"""A ConfigMap holds at most 1 MiB. The grace period of what does not fit starts again after a restart."""


class EvidenceError(UserError):
    """The evidence cannot be read or saved. The message is one line that names the fix."""


class EvidenceNotSaved(EvidenceError):
    """The evidence cannot be saved now."""


class EvidenceStore(Protocol):
    """A place that keeps evidence between two runs."""

    async def load(self, evidence: Evidence) -> None: ...

    async def save(self, evidence: Evidence) -> None:
        """Save the evidence. Raises EvidenceNotSaved; then the caller must not delete anything."""


class EvidenceFile:
    """Evidence in a file that only its owner can read. Load and save inside `with file.locked()`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Return a context manager that locks the file, so that two runs do not overwrite each other's evidence."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise EvidenceError(
                f"{self.path}: cannot be used ({error.strerror}): choose a file with --evidence"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise EvidenceNotSaved(f"{self.path}: another run uses it: wait until that run has ended") from None
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
                f"{self.path}: cannot be read ({error.strerror}): choose another with --evidence"
            ) from None
        except (UnusableEvidence, ValueError, RecursionError) as error:
            reason = error if isinstance(error, UnusableEvidence) else "it is not JSON"
            raise EvidenceError(
                f"{self.path}: {reason}: choose another file with --evidence, or move it away; then every grace period "
                "starts again"
            ) from None

    async def save(self, evidence: Evidence) -> None:
        try:
            write_private(self.path, json.dumps(evidence.to_json(), indent=1) + "\n")
        except OSError as error:
            raise EvidenceNotSaved(
                f"{self.path}: cannot be written ({error.strerror}): choose another with --evidence"
            ) from None


class EvidenceConfigMap:
    """Evidence in a ConfigMap of the downstream cluster.

    The ConfigMap is written only if the evidence changed, with the resourceVersion that was read last.
    """

    def __init__(self, client: Client, namespace: str, name: str = "fairlead-orphans") -> None:
        self._client = client
        self._namespace, self._name = namespace, name
        self._stored: Object | None = None

    async def load(self, evidence: Evidence) -> None:
        try:
            self._stored = await self._client.get(ConfigMap, self._name, self._namespace)
        except NotFound:
            self._stored = None
            return
        except (ApiError, OSError) as error:
            raise EvidenceError(f"{self}: cannot be read: {error}") from None
        try:
            evidence.read(json.loads((self._stored.get("data") or {}).get("evidence.json") or "null"))
        except (UnusableEvidence, ValueError, RecursionError) as error:
            reason = error if isinstance(error, UnusableEvidence) else "it is not JSON"
            raise EvidenceError(f"{self}: {reason}: delete it; then every grace period starts again") from None

    async def save(self, evidence: Evidence) -> None:
        encoded = _encode_within_limit(evidence)
        if self._stored is not None and (self._stored.get("data") or {}).get("evidence.json") == encoded:
            return
        try:
            if self._stored is None:
                created = ConfigMap(self._name, self._namespace, data={"evidence.json": encoded})
                self._stored = await self._client.create(created)
            else:
                self._stored = await self._client.replace(Object({**self._stored, "data": {"evidence.json": encoded}}))
        except (ApiError, UnknownOutcome, OSError) as error:
            raise EvidenceNotSaved(f"{self}: cannot be written: {error}") from None

    def __str__(self) -> str:
        return f"ConfigMap {self._namespace}/{self._name}"


def _encode_within_limit(evidence: Evidence) -> str:
    """Return the evidence as JSON. If it is too long, leave out the parents that became absent last."""
    content = evidence.to_json()
    encoded = json.dumps(content, separators=(",", ":"))
    if len(encoded) <= MAX_EVIDENCE_BYTES:
        return encoded
    entries = [(entry[-1], name, entry) for name, cluster in content["clusters"].items() for entry in cluster["absent"]]
    bytes_left = MAX_EVIDENCE_BYTES - (
        len(encoded) - sum(len(json.dumps(entry, separators=(",", ":"))) + 1 for _, _, entry in entries)
    )
    for cluster in content["clusters"].values():
        cluster["absent"] = []
    for _, name, entry in sorted(entries):
        bytes_left -= len(json.dumps(entry, separators=(",", ":"))) + 1
        if bytes_left < 0:
            break
        content["clusters"][name]["absent"].append(entry)
    return json.dumps(content, separators=(",", ":"))
