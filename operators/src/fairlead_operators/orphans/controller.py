"""The orphan collector as an operator.

    fairlead run fairlead_operators.orphans --context edge --cluster project-a=CONTEXT --cluster project-b=CONTEXT

The operator runs on the downstream cluster. Each --cluster is an upstream cluster, with the name from the labels.
"""

import os
from pathlib import Path
from typing import Any

import fairlead as fl
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.collector import Collector, fleet_of, operator
from fairlead.tools.orphans.evidence_stores import EvidenceConfigMap
from fairlead.tools.orphans.journal import DeletionJournalFile
from fairlead.tools.orphans.rule_files import load, shipped_rules


def collector(ctx: fl.ReadContext) -> Collector:
    """Return a collector that stores its evidence in a ConfigMap and records each deletion in a journal."""
    settings, client = ctx.resources, ctx.unguarded
    store = EvidenceConfigMap(client, settings["namespace"])
    return Collector(
        fleet_of(ctx, settings["retired"]),
        settings["rules"],
        ctx.world,
        store,
        settings["journal"],
        grace=settings["grace"],
        cap=settings["cap"],
        dry_run=ctx.dry_run,
    )


op = operator(collector, "orphans")


@op.startup
def configure(resources: dict[str, Any]) -> None:
    """Read the settings from ORPHANS_RULES, ORPHANS_RETIRED, ORPHANS_NAMESPACE, ORPHANS_MAX and ORPHANS_JOURNAL."""

    def variable(name: str) -> str:
        return os.environ.get(f"ORPHANS_{name}", "")

    resources.setdefault("rules", load(Path(variable("RULES"))) if variable("RULES") else shipped_rules())
    resources.setdefault("retired", variable("RETIRED").split())
    resources.setdefault("namespace", variable("NAMESPACE") or "default")
    resources.setdefault("cap", Cap.parse(variable("MAX")) if variable("MAX") else None)
    resources.setdefault("journal", DeletionJournalFile(Path(variable("JOURNAL") or "orphans.journal")))
    resources.setdefault("grace", None)  # each rule has its own grace period


if __name__ == "__main__":
    op.main()
