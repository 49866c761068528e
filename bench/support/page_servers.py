"""The sections of the page on the servers, from what servers.py, many.py, wrk.py and server.py found."""

from support.page import compared, head, number, plot, ran, table


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
    body = [[what, *compared(what, [values[name] for name in names])] for what, values in lines.items()]
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
            table(head(names), body),
        ]
    )


def many(found):
    rows = found["rows"]
    names = [name for name in ("embedded", "real") if name in rows]
    goals = {"creates one at a time, a second": 4, "memory, MB": 3}
    body = [[what, *compared(what, [rows[name][what] for name in names], goals.get(what))] for what in rows["embedded"]]
    intro = f"{ran(found)} {found['objects']:,} objects; kube-apiserver {found['version']} with etcd (no fsync)."
    return f"{intro}\n\n{table(head(names), body)}"


def wrk(found):
    rows = found["rows"]
    names = [name for name in ("embedded", "real") if name in rows]
    body = [[what, *compared(what, [rows[name][what] for name in names])] for what in rows["embedded"]]
    intro = f"{ran(found)} kube-apiserver {found['version']} with etcd (no fsync), {found['seconds']} s each."
    return f"{intro}\n\n{table(head(names), body)}"


def server(found):
    return f"{ran(found)}\n\n" + table(
        ["", "found", "bar", ""],
        [
            [what, number(value), f"at {'least' if more else 'most'} {bar:,}", _met(value, bar, more)]
            if bar
            else [what, number(value), "", ""]
            for what, (value, bar) in found["rows"].items()
            for more in [what.endswith("a second")]
        ],
    )


def _met(value, bar, more):
    return "met" if (value >= bar if more else value <= bar) else "**missed**"
