"""The section of the page on clients, from what bench/cache.py found."""

from support.page import beside, number, plot, ran, table

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
OTHERS = [name for name in CLIENTS if name != "floor" and not name.startswith("ours")]


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
            f"Ahead of fairlead's cache {said}."
            if (said := ahead(rows, names))
            else "No client is ahead of the cache.",
            *goals(rows, found.get("decoding µs")),
        ]
    )


def ahead(rows, names):
    """In which of the measures which of the other clients is better than our cache, in words."""
    measures = {
        "sync CPU s": "the first list",
        "steady MB": "steady memory",
        "peak MB": "peak memory",
        "event CPU µs": "events",
        "p50 µs": "p50",
        "p99 µs": "p99",
        "import ms": "import",
    }
    others = [name for name in names if name in OTHERS]
    better = {
        title: [
            CLIENTS[name] for name in others if measure in rows[name] and rows[name][measure] < rows["ours"][measure]
        ]
        for measure, title in measures.items()
        if measure in rows["ours"]
    }
    return "; ".join(f"in {title}: {', '.join(found)}" for title, found in better.items() if found)


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
    others = [rows[name] for name in OTHERS if name in rows and not failed(rows, name)]
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
        body.append(
            [f"{what}, ahead of the best of all others", f"{min(o[row] for o in others) / ours[row]:.1f}×", "", ""]
        )
    return [table(["goal", "found", "bar", ""], body)]
