"""The section of the page on controller work, from what bench/work.py found."""

import collections
import re
from pathlib import Path

from support.page import plot, ran, table

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
            if gone := found["pages"] - row["children that came back"]:
                asked[list(PHASES).index("child deleted")] += f", {gone} not back"
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
