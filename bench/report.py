"""Write bench/results into docs/benchmarks.md, between its markers: `python bench/report.py`.

A section is what stands between `<!-- bench NAME -->` and `<!-- /bench NAME -->`; all else on the page is written by
hand and stays. A section without results, or with incomplete results, stays as it is, and the program says so.
"""

import sys
from pathlib import Path

from support.page import drawn, number, ran, table
from support.page_clients import clients
from support.page_servers import many, server, servers, wrk
from support.page_work import work

from support import recording

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs/benchmarks.md"
PLOTS = PAGE.parent / "benchmarks"


def suite(found):
    rows = found["rows"]
    body = [
        [name, number(row["wall s"]), number(row["CPU s"]), f"{row['passed']}" + (f", {wrong} failed" if wrong else "")]
        for name, row in rows.items()
        for wrong in [row.get("failed", 0)]
    ]
    if len(rows) == 2:
        both = [rows["real"][what] / rows["embedded"][what] for what in ("wall s", "CPU s")]
        body.append(["ratio", *(f"{one:.1f}×" for one in both), ""])
    return f"{ran(found)} `{found['part']}`, once with each server.\n\n{table(['', 'wall s', 'CPU s', 'tests'], body)}"


def contention(found):
    rows, writes = found["rows"], found["writes"]
    servers = [name for name in ("embedded", "real") if name in rows]
    head = [f"{name}{what}" for name in servers for what in (", landed", ", requests each")]
    tables = {
        what: table([first, *head], list(_contended([rows[name][what] for name in servers])))
        for what, first in (("contended", "writers, way"), ("added", "others, way"))
    }
    said = "; ".join(
        f"{what}: " + ", ".join(f"{rows[name]['labelled'][what]['conflicts']} on {name}" for name in servers)
        for what in rows[servers[0]]["labelled"]
    )
    between = f"{found['objects']} objects, each labelled by someone between our look and our write of its status."
    return "\n\n".join(
        [
            f"{ran(found)} {writes} writes of ours a line.",
            tables["contended"],
            "Conditions that one of ours adds to a list, beside so many others that each write one of theirs in it:",
            tables["added"],
            f"{between} Conflicts by {said}.",
        ]
    )


def _contended(servers):
    """Rows of a table, by what was found on each server."""
    for line in servers[0]:
        each = [found[line] for found in servers]
        pairs = [(str(one["landed"]), f"{one['requests'] / max(one['landed'], 1):.2f}") for one in each]
        yield [line.replace(" ", ", ", 1), *(value for pair in pairs for value in pair)]


def concurrency(found):
    at_once = [str(number) for number in found["at once"]]
    body = [[what, *(f"{took:.2f}" for took in times)] for what, times in found["rows"].items()]
    return f"{ran(found)} {found['objects']} objects.\n\n{table(['at once', *at_once], body)}"


def orphans(found):
    one = found["rows"]
    return (
        f"{ran(found)} One plan of {found['routes']:,} downstream routes over {found['clusters']} upstream clusters,"
        f" all of them embedded servers in the same process: {number(one['s'])} s, {one['downstream']} requests"
        f" downstream and {one['upstream']:.1f} for each upstream cluster, {one['MiB']:.0f} MiB at the peak."
    )


SECTIONS = {
    "clients": clients,
    "work": work,
    "contention": contention,
    "servers": servers,
    "suite": suite,
    "concurrency": concurrency,
    "server": server,
    "wrk": wrk,
    "many": many,
    "orphans": orphans,
}


def main():
    """The sections that could not be made."""
    text, unmade = PAGE.read_text(), []
    for name, section in SECTIONS.items():
        first, last = f"<!-- bench {name} -->", f"<!-- /bench {name} -->"
        before, _, rest = text.partition(first)
        drawn.clear()
        try:
            if not (found := recording.load(name)):
                continue
            made = section(found)
            text = f"{before}{first}\n\n{made}\n\n{last}{rest[rest.index(last) + len(last) :]}"
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # half measured: the page keeps what it has
            print(f"bench/results/{name}.json is not whole, its section stays as it was: {error!r}")
            unmade.append(name)
            continue
        PLOTS.mkdir(exist_ok=True)
        for plot_name, svg in drawn.items():
            recording.write(PLOTS / f"{plot_name}.svg", svg)
    recording.write(PAGE, text)
    print(f"{PAGE.relative_to(PAGE.parent.parent)} is written")
    return unmade


if __name__ == "__main__":
    if unmade := main():
        sys.exit(f"not made: {', '.join(unmade)}")
