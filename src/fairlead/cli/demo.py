"""`fairlead demo`: the reference systems, old way against new, on the embedded server in virtual time."""

from collections.abc import Awaitable, Callable
from typing import Any

import click


@click.command()
@click.argument("system", type=click.Choice(["httpproxy", "all"]), default="all", metavar="[SYSTEM]")
@click.option("--seed", type=int, default=1, show_default=True, help="Where all chance in the run comes from.")
@click.option("-N", "--objects", type=click.IntRange(1, 1000), default=None, help="How many; 1 and 20 by default.")
def demo(system: str, seed: int, objects: int | None) -> None:
    """Run SYSTEM (httpproxy; all by default) twice: as it was when it failed, and with fairlead.

    Nothing is needed and nothing is touched: server, controllers and time all run inside this process.
    """
    for name in SYSTEMS if system == "all" else [system]:
        SYSTEMS[name](seed, objects)


def _httpproxy(seed: int, objects: int | None) -> None:
    from fairlead.operators.httpproxy import bed
    from fairlead.report import tables

    columns = ["", "409s", "requests", "median", "last", "idle writes"]
    for count in [objects] if objects else [1, 20]:
        ways = {"CreateOrUpdate": bed.theirs, "fairlead": bed.ours}
        outcomes = {name: _race(bed.race, seed, way, count) for name, way in ways.items()}
        what = "1 HTTPProxy" if count == 1 else f"{count} HTTPProxies at once"
        tables.show(f"{what}, beside a gateway controller", columns, bed.summary(outcomes))
    low, high = (round(1000 * bound) for bound in bed.WATCH)
    tables.notes(
        "409s: in all; requests: of the operator, for each object, until the last;",
        "median, last: from creation to Programmed=True; idle writes: ten minutes after.",
        f"Time is virtual; watch events come {low} to {high} ms late.",
    )


def _race(race: Callable[..., Awaitable[Any]], seed: int, way: object, count: int) -> Any:
    from fairlead.server.app import Server
    from fairlead.testing import virtual

    async def main() -> Any:
        world = virtual.world(seed)
        return await race(Server(world).transport, world, way, proxies=count)

    return virtual.run(main())


SYSTEMS: dict[str, Callable[[int, int | None], None]] = {"httpproxy": _httpproxy}
