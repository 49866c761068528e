"""The versions that this process wrote, to recognize their events in a watch."""

# An event follows its write within seconds. The limit keeps the versions of objects that no watch reports from
# accumulating; a forgotten version counts as foreign.
MAX_VERSIONS = 10_000


class OwnVersions:
    """The newest versions that this process wrote, and the uids that it removed.

    Guarantees: a version is known as soon as the server's answer is recorded. The event of a write often arrives before
    its answer, so ask as late as possible.

    Does not guarantee: memory of more than MAX_VERSIONS writes, and of writes whose answer was lost.
    """

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], None] = {}  # ordered: the oldest first

    def add(self, uid: str, version: str) -> None:
        """Record a version that this process wrote."""
        self._versions[uid, version] = None
        if len(self._versions) > MAX_VERSIONS:
            del self._versions[next(iter(self._versions))]

    def add_removal(self, uid: str) -> None:
        """Record an object that this process removed."""
        self.add(uid, "")

    def __contains__(self, version: tuple[str, str]) -> bool:
        return version in self._versions
