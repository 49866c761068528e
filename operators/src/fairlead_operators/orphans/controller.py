"""The collector, always on.

    fairlead run fairlead_operators.orphans --context edge --cluster project-a=CONTEXT --cluster project-b=CONTEXT

The cluster it runs on is the downstream one; each --cluster is an upstream, by the name that labels give it.
"""

import os
from pathlib import Path
from typing import Any

import fairlead as fl
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.journal import JournalFile
from fairlead.tools.orphans.loading import load, shipped
from fairlead.tools.orphans.stores import InConfigMap
from fairlead.tools.orphans.watch import Collector, fleet, operator


def collector(view: fl.ReadContext) -> Collector:
    """What is collected, with what was seen so far in a ConfigMap and each deletion in a journal."""
    told, client = view.resources, view.unguarded
    store = InConfigMap(client, told["namespace"])
    return Collector(
        fleet(view, told["retired"]),
        told["rules"],
        view.world,
        store,
        told["journal"],
        grace=told["grace"],
        cap=told["cap"],
        dry_run=view.dry_run,
    )


op = operator(collector, "orphans")


@op.startup
def configure(resources: dict[str, Any]) -> None:
    """From the environment: ORPHANS_RULES (a file), _RETIRED (names), _NAMESPACE, _MAX (25 or 5%), _JOURNAL."""

    def said(word: str) -> str:
        return os.environ.get(f"ORPHANS_{word}", "")

    resources.setdefault("rules", load(Path(said("RULES"))) if said("RULES") else shipped())
    resources.setdefault("retired", said("RETIRED").split())
    resources.setdefault("namespace", said("NAMESPACE") or "default")
    resources.setdefault("cap", Cap.parse(said("MAX")) if said("MAX") else None)
    resources.setdefault("journal", JournalFile(Path(said("JOURNAL") or "orphans.journal")))
    resources.setdefault("grace", None)  # each rule's own


if __name__ == "__main__":
    op.main()
