"""Write the sections of the page about the servers, from the results of servers.py, many.py, wrk.py and server.py."""

from support.page import compare, describe_run, head, number, plot, table


def servers(result):
    rows = result["rows"]
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
    number_rows = [row for row, value in rows["embedded"].items() if isinstance(value, float | int)]
    lines |= {row: {n: rows[n][row] for n in names} for row in number_rows}
    body = [[row_name, *compare(row_name, [values[name] for name in names])] for row_name, values in lines.items()]
    wide = ", 16 connections"
    labels = {"embedded": "fairlead serve", "real": "kube-apiserver"}
    bars = [
        (f"{labels[name]}, {verb.removesuffix(wide)}", rate["a second"], number(rate["a second"]))
        for verb in rows["embedded"]["writes"]
        if verb.endswith(wide)
        for name in names
        for rate in [rows[name]["writes"][verb]]
    ]
    return "\n\n".join(
        [
            f"{describe_run(result)} kube-apiserver {result['version']} with etcd (no fsync).",
            plot("servers", "Writes per second over 16 connections", bars),
            table(head(names), body),
        ]
    )


def many(result):
    rows = result["rows"]
    names = [name for name in ("embedded", "real") if name in rows]
    goals = {"creates one at a time, a second": 4, "memory, MB": 3}
    body = [
        [row_name, *compare(row_name, [rows[name][row_name] for name in names], goals.get(row_name))]
        for row_name in rows["embedded"]
    ]
    server = f"kube-apiserver {result['version']} with etcd (no fsync)"
    intro = f"{describe_run(result)} {result['objects']:,} objects; {server}."
    return f"{intro}\n\n{table(head(names), body)}"


def wrk(result):
    rows = result["rows"]
    names = [name for name in ("embedded", "real") if name in rows]
    body = [[row_name, *compare(row_name, [rows[name][row_name] for name in names])] for row_name in rows["embedded"]]
    intro = (
        f"{describe_run(result)} kube-apiserver {result['version']} with etcd (no fsync), {result['seconds']} s each."
    )
    return f"{intro}\n\n{table(head(names), body)}"


def server(result):
    return f"{describe_run(result)}\n\n" + table(
        ["", "measured", "goal", ""],
        [
            [
                row_name,
                number(value),
                f"at {'least' if is_more_better else 'most'} {goal:,}",
                _met(value, goal, is_more_better),
            ]
            if goal
            else [row_name, number(value), "", ""]
            for row_name, (value, goal) in result["rows"].items()
            for is_more_better in [row_name.endswith("a second")]
        ],
    )


def _met(value, goal, is_more_better):
    return "met" if (value >= goal if is_more_better else value <= goal) else "**missed**"
