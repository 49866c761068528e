"""Write the section of the page that compares fairlead with its peers, from the results of bench/work.py."""

import collections
import re
from pathlib import Path

from support.page import describe_run, plot, table

HERE = Path(__file__).parents[1]
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


def peer_controllers(result):
    intro = (
        f"{describe_run(result)} {result['pages']} objects; in the storm, 20 whose children are edited without a"
        " pause. The table shows requests per object. In brackets: how many of all requests were rejected (409, or 422"
        " for a patch"
        " whose test failed)."
    )
    versions = {
        "controller-runtime": pinned("peers/go/go.mod", r"controller-runtime v(\S+)"),
        "kube-rs": pinned("peers/rust/Cargo.toml", r'kube = { version = "=(.*?)"'),
        "kopf": pinned("../requirements/peers.txt", r"\nkopf==(\S+)"),
        "lightkube": pinned("../requirements/peers.txt", r"\nlightkube==(\S+)"),
    }
    page_parts = [intro, "Peers: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."]
    for kind, title in (("real", "On a real kube-apiserver"), ("embedded", "On the embedded server")):
        every = result["rows"].get(kind, {})
        rows = {name: row for name, row in every.items() if not row.get("failed") and not row.get("absent")}
        if "fairlead" not in rows:
            continue
        body = [["least possible", *(str(LEAST[phase]) for phase in PHASES), "0", ""]]
        for name, row in rows.items():
            requests = [
                f"{row[p]['requests']:.1f}" + (f" ({row[p]['refused']})" * bool(row[p]["refused"])) for p in PHASES
            ]
            if missing_count := result["pages"] - row["children that came back"]:
                requests[list(PHASES).index("child deleted")] += f", {missing_count} not recreated"
            body.append([f"**{name}**" if name == "fairlead" else name, *requests, str(row["foreign data lost"])])
            body[-1].append(str(row["foreign refused"]))
        body += [[name, describe_missing(row)] + [""] * 8 for name, row in every.items() if name not in rows]
        column_names = ["requests", *PHASES.values(), "lost data of the other writer", "409s of the other writer"]
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
        costs = ["", "burst, s", "one object, p50 ms", "CPU ms, created", "CPU ms, nothing to do", "CPU s, total"]
        measures = {
            "burst s": "the burst",
            "one at a time p50 ms": "one object",
            "CPU s": "CPU",
            "peak MB": "memory",
        }
        better = {
            title: [
                name.replace(", ", " by ") for name, row in rows.items() if row[measure] < rows["fairlead"][measure]
            ]
            for measure, title in measures.items()
        }
        summary = "; ".join(f"in {title}: {', '.join(names)}" for title, names in better.items() if names)
        bars = [(name, total(row), f"{total(row):,.0f}") for name, row in rows.items()]
        kinds = sorted({kind_ for row in rows.values() for kind_ in verbs(row)})
        split = [[name, *(str(verbs(row)[kind_] or "") for kind_ in kinds)] for name, row in rows.items()]
        page_parts += [
            f"### {title}",
            plot(f"requests-{kind}", "Requests for the whole workload", bars),
            table(column_names, body),
            table(["all requests by verb and code", *kinds], split),
            table([*costs, "peak MB", "server's CPU s"], used),
            f"Better than fairlead {summary}." if summary else "No peer is better than fairlead in any of these.",
        ]
    return "\n\n".join(page_parts)


def describe_missing(row):
    """Return why a peer has no figures."""
    return f"not run: {row['absent']}" if row.get("absent") else f"failed: {row['failed']}"


def verbs(row):
    """Count all requests of a peer by verb and status code."""
    counts = collections.Counter()
    for phase in PHASES:
        counts.update(row[phase]["by verb and code"])
    return counts


def total(row):
    return verbs(row).total()


def pinned(path, pattern):
    return re.search(pattern, (HERE / path).read_text())[1]
