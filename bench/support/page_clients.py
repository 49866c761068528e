"""Write the section of the page about clients, from the results of bench/cache.py."""

from support.page import describe_run, number, plot, table, with_ratio

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
PEERS = [name for name in CLIENTS if name != "floor" and not name.startswith("ours")]


def clients(result):
    rows, versions = result["rows"], result["versions"]
    label = {name: f"{client_name} {versions.get(name, '')}".strip() for name, client_name in CLIENTS.items()}
    names = [name for name in CLIENTS if name in rows and not rows[name].get("failed")]
    ours, whole_operator = rows["ours"], rows["ours_operator"]
    body = []
    for name in names:
        row, ref = rows[name], whole_operator if name in ("kopf", "ours_operator") else ours
        body.append(
            [
                label[name],
                with_ratio(row["sync CPU s"], ref["sync CPU s"]),
                number(row["steady MB"]),
                number(row["peak MB"]),
                with_ratio(1e6 / row["event CPU µs"], 1e6 / ref["event CPU µs"], is_more_better=True),
                *(number(row[delay]) if delay in row else "" for delay in ("p50 µs", "p99 µs")),
                number(row["import ms"]),
            ]
        )
    body += [[label[name], f"failed: {rows[name]['failed']}"] + [""] * 6 for name in CLIENTS if failed(rows, name)]
    column_names = [
        "",
        "first list, CPU s",
        "steady MB",
        "peak MB",
        "events per CPU s",
        "p50 µs",
        "p99 µs",
        "import ms",
    ]
    overhead = rows["overhead"]
    intro = (
        f"{describe_run(result)} {result['objects']:,} Pods of 6 KiB,"
        f" {overhead['JSON held MB']:,.0f} MB of JSON as fairlead stores it."
        " In brackets: the ratio to fairlead's cache (for kopf, which is an operator, to fairlead's operator)."
    )
    shown_names = [name for name in names if name != "ours_pages"]
    return "\n\n".join(
        [
            intro,
            plot(
                "first-list",
                f"CPU seconds to load {result['objects']:,} objects",
                [(label[name], rows[name]["sync CPU s"], f"{rows[name]['sync CPU s']:.1f} s") for name in shown_names],
            ),
            plot(
                "memory",
                f"Megabytes of memory for {result['objects']:,} objects",
                [(label[n], rows[n]["steady MB"], f"{rows[n]['steady MB']:,.0f}") for n in shown_names if n != "kopf"],
            ),
            plot(
                "events",
                "Watch events per CPU second",
                [
                    (label[n], 1e6 / rows[n]["event CPU µs"], f"{1e6 / rows[n]['event CPU µs']:,.0f}")
                    for n in shown_names
                ],
            ),
            table(column_names, body),
            f"Better than fairlead's cache {better}."
            if (better := describe_better(rows, names))
            else "No client is better than the cache.",
            *goals(rows, result.get("decoding µs")),
        ]
    )


def describe_better(rows, names):
    """List the other clients that are better than our cache, by measure."""
    measures = {
        "sync CPU s": "the first list",
        "steady MB": "steady memory",
        "peak MB": "peak memory",
        "event CPU µs": "events",
        "p50 µs": "p50",
        "p99 µs": "p99",
        "import ms": "import",
    }
    peers = [name for name in names if name in PEERS]
    better = {
        title: [
            CLIENTS[name] for name in peers if measure in rows[name] and rows[name][measure] < rows["ours"][measure]
        ]
        for measure, title in measures.items()
        if measure in rows["ours"]
    }
    return "; ".join(f"in {title}: {', '.join(peers)}" for title, peers in better.items() if peers)


def failed(rows, name):
    return rows.get(name, {}).get("failed", "")


def goals(rows, decoded):
    """Return the table of goals and whether they were met."""
    floor, ours, overhead = rows["floor"], rows["ours"], rows["overhead"]
    # clients that have a cache
    caching = [rows[name] for name in ("cloudcoil", "kubernetes") if name in rows and not failed(rows, name)]
    lines = [
        ("first list, CPU relative to the floor", ours["sync CPU s"] / floor["sync CPU s"], 1.5),
        ("one event, CPU relative to the floor", ours["event CPU µs"] / floor["event CPU µs"], 1.5),
        *(
            [("decoding one event, CPU relative to a full parse by orjson", decoded["ours"] / decoded["orjson"], 0.6)]
            if decoded
            else []
        ),
        ("steady memory relative to the stored JSON", ours["steady MB"] / overhead["JSON held MB"], 1.3),
        ("bytes per object in addition to its JSON", overhead["overhead B"], 600),
    ]
    body = [
        [goal_name, number(value), f"at most {goal}", "met" if value <= goal else "**missed**"]
        for goal_name, value, goal in lines
    ]
    peers = [rows[name] for name in PEERS if name in rows and not failed(rows, name)]
    for goal_name, row in (("first list", "sync CPU s"), ("events", "event CPU µs")) if caching else ():
        factor = min(peer[row] for peer in caching) / ours[row]
        body.append(
            [
                f"{goal_name}, compared with the best peer with a cache",
                f"{factor:.1f}×",
                "at least 5×",
                "met" if factor >= 5 else "**missed**",
            ]
        )
        body.append(
            [
                f"{goal_name}, compared with the best of all peers",
                f"{min(o[row] for o in peers) / ours[row]:.1f}×",
                "",
                "",
            ]
        )
    return [table(["goal", "measured", "limit", ""], body)]
