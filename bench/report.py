"""Write what bench/results holds into docs/benchmarks.md, between its markers: `python bench/report.py`.

A section is what stands between `<!-- bench NAME -->` and `<!-- /bench NAME -->`; all else on the page is written by
hand and stays. A section without results stays as it is.
"""

import collections
import re
from pathlib import Path

import _bars
import _record

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs/benchmarks.md"
PLOTS = PAGE.parent / "benchmarks"
CLIENTS = {
    "floor": "floor: bytes in a dict",
    "ours": "fairlead, cache",
    "ours_operator": "fairlead, operator",
    "ours_pages": "fairlead, cache, lists in pages",
    "lightkube": "lightkube",
    "cloudcoil": "cloudcoil",
    "kubernetes": "kubernetes (official), informer",
    "kubernetes_asyncio": "kubernetes-asyncio",
    "kr8s": "kr8s",
    "kopf": "kopf (keeps no objects)",
}


def table(head, rows):
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plot(name, title, bars):
    PLOTS.mkdir(exist_ok=True)
    (PLOTS / f"{name}.svg").write_text(_bars.chart(title, bars))
    return f"![{title}](benchmarks/{name}.svg)"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def beside(value, ours, *, more=False):
    """The value and how many times ours is better; said plainly where it is worse."""
    ratio = ours / value if more else value / ours
    return f"{number(value)} ({ratio:.1f}×)"


def ran(found):
    run = found["run"]
    return f"Measured {run['date']} on {run['machine']}, Python {run['python']}."


def clients(found):
    rows, versions = found["rows"], found["versions"]
    label = {name: f"{text} {versions.get(name, '')}".strip() for name, text in CLIENTS.items()}
    names = [name for name in CLIENTS if name in rows and not rows[name].get("failed")]
    ours, whole = rows["ours"], rows["ours_operator"]
    body = []
    for name in names:
        row, ref = rows[name], whole if name in ("kopf", "ours_operator") else ours
        body.append(
            [
                label[name],
                beside(row["sync CPU s"], ref["sync CPU s"]),
                number(row["steady MB"]),
                number(row["peak MB"]),
                beside(1e6 / row["event CPU µs"], 1e6 / ref["event CPU µs"], more=True),
                *(number(row[delay]) if delay in row else "" for delay in ("p50 µs", "p99 µs")),
                number(row["import ms"]),
            ]
        )
    body += [[label[name], f"failed: {rows[name]['failed']}"] + [""] * 6 for name in CLIENTS if failed(rows, name)]
    head = ["", "first list, CPU s", "steady MB", "peak MB", "events per CPU s", "p50 µs", "p99 µs", "import ms"]
    held = rows["overhead"]
    intro = (
        f"{ran(found)} {found['objects']:,} Pods of 6 KiB, {held['JSON held MB']:,.0f} MB of JSON as fairlead keeps it."
        " In brackets: how many times as much as fairlead's cache needs (kopf, an operator, as fairlead's operator)."
    )
    shown = [name for name in names if name != "ours_pages"]
    return "\n\n".join(
        [
            intro,
            plot(
                "first-list",
                f"CPU seconds to take in {found['objects']:,} objects",
                [(label[name], rows[name]["sync CPU s"], f"{rows[name]['sync CPU s']:.1f} s") for name in shown],
            ),
            plot(
                "memory",
                f"Megabytes that {found['objects']:,} objects hold",
                [(label[n], rows[n]["steady MB"], f"{rows[n]['steady MB']:,.0f}") for n in shown if n != "kopf"],
            ),
            plot(
                "events",
                "Watch events for each second of CPU",
                [(label[n], 1e6 / rows[n]["event CPU µs"], f"{1e6 / rows[n]['event CPU µs']:,.0f}") for n in shown],
            ),
            table(head, body),
            *goals(rows, found.get("decoding µs")),
        ]
    )


def failed(rows, name):
    return rows.get(name, {}).get("failed", "")


def goals(rows, decoded):
    """The bars that were set, and whether they were met."""
    floor, ours, held = rows["floor"], rows["ours"], rows["overhead"]
    # those with a cache of their own
    keeping = [rows[name] for name in ("cloudcoil", "kubernetes") if name in rows and not failed(rows, name)]
    lines = [
        ("first list, of the floor's CPU", ours["sync CPU s"] / floor["sync CPU s"], 1.5),
        ("an event, of the floor's CPU", ours["event CPU µs"] / floor["event CPU µs"], 1.5),
        *([("decoding an event, of orjson's full parse", decoded["ours"] / decoded["orjson"], 0.6)] if decoded else []),
        ("steady memory, of the JSON held", ours["steady MB"] / held["JSON held MB"], 1.3),
        ("bytes beside its JSON, an object", held["overhead B"], 600),
    ]
    body = [
        [what, number(value), f"at most {bar}", "met" if value <= bar else "**missed**"] for what, value, bar in lines
    ]
    for what, row in (("first list", "sync CPU s"), ("events", "event CPU µs")) if keeping else ():
        ahead = min(peer[row] for peer in keeping) / ours[row]
        body.append(
            [
                f"{what}, ahead of the best peer with a cache",
                f"{ahead:.1f}×",
                "at least 5×",
                "met" if ahead >= 5 else "**missed**",
            ]
        )
    return [table(["goal", "found", "bar", ""], body)]


PHASES = {
    "created": "created in a burst",
    "nothing to do": "nothing to do",
    "message changed": "message changed",
    "child deleted": "child deleted",
    "one at a time": "created one at a time, no other writer",
    "storm": "message changed twice in a storm",
    "deleted": "deleted",
}
LEAST = {
    "created": 5,
    "nothing to do": 0,
    "message changed": 3,
    "child deleted": 1,
    "storm": 6,
    "deleted": 1,
    "one at a time": 5,
}


def work(found):
    intro = (
        f"{ran(found)} {found['pages']} objects; in the storm, 20 whose children are edited without a pause. Requests"
        " for each object, and in brackets how many of all were refused (409, or 422 for a patch whose test failed)."
    )
    versions = {
        "controller-runtime": pinned("peers/go/go.mod", r"controller-runtime v(\S+)"),
        "kube-rs": pinned("peers/rust/Cargo.toml", r'kube = { version = "=(.*?)"'),
        "kopf": pinned("../requirements/peers.txt", r"\nkopf==(\S+)"),
        "lightkube": pinned("../requirements/peers.txt", r"\nlightkube==(\S+)"),
    }
    parts = [intro, "Peers: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."]
    for kind, title in (("real", "On a real kube-apiserver"), ("embedded", "On the embedded server")):
        every = found["rows"].get(kind, {})
        rows = {name: row for name, row in every.items() if not row.get("failed") and not row.get("absent")}
        if "fairlead" not in rows:
            continue
        body = [["least possible", *(str(LEAST[phase]) for phase in PHASES), "0", ""]]
        for name, row in rows.items():
            asked = [
                f"{row[p]['requests']:.1f}" + (f" ({row[p]['refused']})" * bool(row[p]["refused"])) for p in PHASES
            ]
            body.append([f"**{name}**" if name == "fairlead" else name, *asked, str(row["foreign data lost"])])
            body[-1].append(str(row["foreign refused"]))
        body += [[name, missed(row)] + [""] * 8 for name, row in every.items() if name not in rows]
        head = ["requests", *PHASES.values(), "foreign data lost", "409s of the foreign writer"]
        used = [
            [
                f"**{name}**" if name == "fairlead" else name,
                f"{row['burst s']:.1f}",
                f"{row['one at a time p50 ms']:.0f}",
                f"{row['burst CPU ms']:.1f}",
                f"{row['idle CPU ms']:.1f}",
                f"{row['CPU s']:.1f}",
                f"{row['peak MB']:.0f}",
                f"{row['server CPU s']:.1f}",
            ]
            for name, row in rows.items()
        ]
        costs = ["", "burst, s", "one alone, p50 ms", "CPU ms, created", "CPU ms, nothing to do", "CPU s in all"]
        measures = {
            "burst s": "the burst",
            "one at a time p50 ms": "one object alone",
            "CPU s": "CPU",
            "peak MB": "memory",
        }
        ahead = {
            title: [
                name.replace(", ", " by ") for name, row in rows.items() if row[measure] < rows["fairlead"][measure]
            ]
            for measure, title in measures.items()
        }
        said = "; ".join(f"in {title}: {', '.join(names)}" for title, names in ahead.items() if names)
        bars = [(name, total(row), f"{total(row):,.0f}") for name, row in rows.items()]
        kinds = sorted({one for row in rows.values() for one in verbs(row)})
        split = [[name, *(str(verbs(row)[one] or "") for one in kinds)] for name, row in rows.items()]
        parts += [
            f"### {title}",
            plot(f"requests-{kind}", "Requests for the whole piece of work", bars),
            table(head, body),
            table(["all requests by verb and code", *kinds], split),
            table([*costs, "peak MB", "server's CPU s"], used),
            f"Ahead of fairlead {said}." if said else "None is ahead of fairlead in any of these.",
        ]
    return "\n\n".join(parts)


def missed(row):
    """Why a contestant has no figures."""
    return f"not run: {row['absent']}" if row.get("absent") else f"failed: {row['failed']}"


def verbs(row):
    """All of a contestant's requests by verb and code."""
    counts = collections.Counter()
    for phase in PHASES:
        counts.update(row[phase]["by verb and code"])
    return counts


def total(row):
    return verbs(row).total()


def pinned(path, pattern):
    return re.search(pattern, (HERE / path).read_text())[1]


def servers(found):
    rows = found["rows"]
    names = [name for name in ("embedded", "real") if name in rows]
    lines = {
        f"{verb}, a second": {n: rows[n]["writes"][verb]["a second"] for n in names}
        for verb in rows["embedded"]["writes"]
    }
    for width in ("1 connection", "16 connections"):
        for n in names:
            costs = [w["server CPU ms"] for verb, w in rows[n]["writes"].items() if verb.endswith(f" {width}")]
            lines.setdefault(f"a write, server's CPU ms, {width}", {})[n] = sum(costs) / len(costs)
    for percentile in ("p50", "p99"):
        lines[f"write to event, {percentile} ms"] = {n: rows[n]["write to event ms"][percentile] for n in names}
    plain = [row for row, value in rows["embedded"].items() if isinstance(value, float | int)]
    lines |= {row: {n: rows[n][row] for n in names} for row in plain}
    body = []
    for what, values in lines.items():
        better = (
            values.get("real", 0) / values["embedded"]
            if "a second" not in what
            else values["embedded"] / values["real"]
        )
        said = f"{better:.1f}×" + (", **behind**" if better < 1 else "")
        body.append([what, *(number(values[name]) for name in names), said])
    wide = ", 16 connections"
    called = {"embedded": "fairlead serve", "real": "kube-apiserver"}
    bars = [
        (f"{called[name]}, {verb.removesuffix(wide)}", rate["a second"], number(rate["a second"]))
        for verb in rows["embedded"]["writes"]
        if verb.endswith(wide)
        for name in names
        for rate in [rows[name]["writes"][verb]]
    ]
    return "\n\n".join(
        [
            f"{ran(found)} kube-apiserver {found['version']} with etcd (no fsync).",
            plot("servers", "Writes a second over 16 connections", bars),
            table(["", *names, "embedded is better by"], body),
        ]
    )


def suite(found):
    rows = found["rows"]
    body = [[name, number(row["wall s"]), number(row["CPU s"]), str(row["passed"])] for name, row in rows.items()]
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


def many(found):
    rows = found["rows"]
    names = [name for name in ("embedded", "real") if name in rows]
    goals = {"creates one at a time, a second": 4, "memory, MB": 3}
    body = []
    for what in rows["embedded"]:
        values = [rows[name][what] for name in names]
        body.append([what, *map(number, values)])
        if len(values) == 2:
            ratio = values[0] / values[1] if what.endswith("a second") else values[1] / values[0]
            bar = goals.get(what)
            met = f" (goal {bar}×: {'met' if ratio >= bar else '**missed**'})" if bar else ""
            body[-1].append(f"{ratio:.1f}×" + (", **behind**" if ratio < 1 else "") + met)
    intro = f"{ran(found)} {found['objects']:,} objects; kube-apiserver {found['version']} with etcd (no fsync)."
    head = ["", *names, *(["embedded is better by"] if len(names) == 2 else [])]
    return f"{intro} The load of the machine was {found['run']['load']} at the end.\n\n{table(head, body)}"


SECTIONS = {
    "clients": clients,
    "work": work,
    "contention": contention,
    "servers": servers,
    "suite": suite,
    "many": many,
}


def main():
    text = PAGE.read_text()
    for name, section in SECTIONS.items():
        if found := _record.load(name):
            first, last = f"<!-- bench {name} -->", f"<!-- /bench {name} -->"
            before, _, rest = text.partition(first)
            text = f"{before}{first}\n\n{section(found)}\n\n{last}{rest.partition(last)[2]}"
    PAGE.write_text(text)
    print(f"{PAGE.relative_to(PAGE.parent.parent)} is made anew")


if __name__ == "__main__":
    main()
