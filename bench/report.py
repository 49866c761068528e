"""Write bench/results into docs/benchmarks.md, between its markers: `python bench/report.py`.

A section is the text between `<!-- bench NAME -->` and `<!-- /bench NAME -->`. The rest of the page is written by hand
and does not change. A section without results stays as it is. For incomplete results the program also prints a message.
"""

import sys
from pathlib import Path

from support.page import describe_run, number, plots, table
from support.page_clients import clients
from support.page_peer_controllers import peer_controllers
from support.page_servers import many, server, servers, wrk

from support import recording

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs/benchmarks.md"
PLOTS = PAGE.parent / "benchmarks"


def suite(result):
    rows = result["rows"]
    body = [
        [
            name,
            number(row["wall s"]),
            number(row["CPU s"]),
            f"{row['passed']}" + (f", {failed_count} failed" if failed_count else ""),
        ]
        for name, row in rows.items()
        for failed_count in [row.get("failed", 0)]
    ]
    if len(rows) == 2:
        ratios = [rows["real"][measure] / rows["embedded"][measure] for measure in ("wall s", "CPU s")]
        body.append(["ratio", *(f"{ratio:.1f}×" for ratio in ratios), ""])
    intro = f"{describe_run(result)} `{result['part']}`, once with each server."
    return f"{intro}\n\n{table(['', 'wall s', 'CPU s', 'tests'], body)}"


def contention(result):
    rows, writes = result["rows"], result["writes"]
    servers = [name for name in ("embedded", "real") if name in rows]
    column_names = [f"{name}{measure}" for name in servers for measure in (", succeeded", ", requests each")]
    tables = {
        measure: table([first, *column_names], list(_contended([rows[name][measure] for name in servers])))
        for measure, first in (("contended", "writers, method"), ("added", "other writers, method"))
    }
    conflicts = "; ".join(
        f"{measure}: " + ", ".join(f"{rows[name]['labelled'][measure]['conflicts']} on {name}" for name in servers)
        for measure in rows[servers[0]]["labelled"]
    )
    intro = f"{result['objects']} objects. Another client labels each one between our read and our status write."
    return "\n\n".join(
        [
            f"{describe_run(result)} {writes} writes by fairlead per row.",
            tables["contended"],
            "One fairlead writer adds conditions to a list while other writers add their own:",
            tables["added"],
            f"{intro} Conflicts with {conflicts}.",
        ]
    )


def _contended(servers):
    """Yield the rows of a table with the results of each server."""
    for line in servers[0]:
        measurements = [result[line] for result in servers]
        pairs = [(str(row["landed"]), f"{row['requests'] / max(row['landed'], 1):.2f}") for row in measurements]
        yield [line.replace(" ", ", ", 1), *(value for pair in pairs for value in pair)]


def concurrency(result):
    limits = [str(number) for number in result["at once"]]
    body = [[row_name, *(f"{seconds:.2f}" for seconds in times)] for row_name, times in result["rows"].items()]
    return f"{describe_run(result)} {result['objects']} objects.\n\n{table(['concurrent reconciles', *limits], body)}"


def orphans(result):
    row = result["rows"]
    return (
        f"{describe_run(result)} One plan of {result['routes']:,} downstream routes over {result['clusters']} upstream"
        " clusters,"
        f" all of them embedded servers in the same process: {number(row['s'])} s, {row['downstream']} requests"
        f" downstream and {row['upstream']:.1f} for each upstream cluster, {row['MiB']:.0f} MiB at the peak."
    )


def backoff(result):
    columns = ("p50 ms", "p99 ms", "max ms")
    body = [
        [name, *(number(row[column]) for column in columns), str(row["edited"]), str(row["alone"])]
        for name, row in result["rows"].items()
    ]
    column_names = [
        "",
        *columns,
        f"passes, edited 100 times per second for {result['seconds']:.0f} s",
        "passes, not edited",
    ]
    return f"{describe_run(result)} {result['objects']} objects in error.\n\n{table(column_names, body)}"


SECTIONS = {
    "clients": clients,
    "work": peer_controllers,
    "contention": contention,
    "backoff": backoff,
    "servers": servers,
    "suite": suite,
    "concurrency": concurrency,
    "server": server,
    "wrk": wrk,
    "many": many,
    "orphans": orphans,
}


def main():
    """Write the page. Return the names of the sections with incomplete results."""
    page, incomplete = PAGE.read_text(), []
    for name, section in SECTIONS.items():
        first, last = f"<!-- bench {name} -->", f"<!-- /bench {name} -->"
        before, _, after_marker = page.partition(first)
        plots.clear()
        try:
            if not (result := recording.load(name)):
                continue
            body = section(result)
            page = f"{before}{first}\n\n{body}\n\n{last}{after_marker[after_marker.index(last) + len(last) :]}"
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # The results are incomplete: keep the section.
            print(f"bench/results/{name}.json is incomplete, so its section is unchanged: {error!r}")
            incomplete.append(name)
            continue
        PLOTS.mkdir(exist_ok=True)
        for plot_name, svg in plots.items():
            recording.write(PLOTS / f"{plot_name}.svg", svg)
    recording.write(PAGE, page)
    print(f"{PAGE.relative_to(PAGE.parent.parent)} was written")
    return incomplete


if __name__ == "__main__":
    if incomplete := main():
        sys.exit(f"not updated: {', '.join(incomplete)}")
