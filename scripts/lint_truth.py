"""Print precision and recall of the lint rules on judged sites.

    python scripts/lint_truth.py CHECKOUTS SITES

CHECKOUTS is a folder with one checkout per repository and commit: OWNER+NAME@COMMIT, OWNER/NAME@COMMIT, OWNER+NAME,
OWNER/NAME or NAME. SITES has one JSON object per line: repo, commit, file, line, rule and verdict. A finding of the
same rule within three lines of a site matches it.
"""

import argparse
import collections
import json
import sys
import time
from pathlib import Path

from fairlead.tools.lint.engine import lint

NEAR = 3
BENIGN = {"false_positive", "true_negative"}


def find_checkout(folder, repo, commit):
    owner, _, name = repo.partition("/")
    for candidate in (f"{owner}+{name}@{commit}", f"{owner}/{name}@{commit}", f"{owner}__{name}@{commit}",
                      f"{owner}/{name}/{commit}", f"{name}@{commit}", f"{name}-{commit}", f"{owner}+{name}",
                      f"{owner}/{name}", f"{owner}__{name}", name):  # fmt: skip
        if (folder / candidate).is_dir():
            return folder / candidate
    for path in folder.glob(f"*{name}*{commit[:7]}*"):
        return path
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("sites", type=Path)
    parser.add_argument("--show", action="store_true", help="print each missed and each wrong site")
    parser.add_argument("--repo", default="", help="only repositories whose name contains this")
    parser.add_argument("--findings", type=Path, help="write all findings of the checkouts to this file, as JSON lines")
    options = parser.parse_args()
    sites = [json.loads(line) for line in options.sites.read_text().splitlines() if line.strip()]
    sites = [site for site in sites if options.repo in site["repo"]]
    by_checkout = collections.defaultdict(list)
    for site in sites:
        by_checkout[site["repo"], site["commit"]].append(site)
    tables = collections.defaultdict(collections.Counter)
    above_info = []
    findings_file = options.findings.open("w") if options.findings else None
    for (repo, commit), judged in sorted(by_checkout.items()):
        checkout = find_checkout(options.checkouts, repo, commit)
        if checkout is None:
            print(f"no checkout of {repo} at {commit}: {len(judged)} sites are not counted", file=sys.stderr)
            continue
        started = time.time()
        report = lint(checkout, ("all",))
        print(f"{repo} {commit[:9]}: {report.lines} lines, {time.time() - started:.1f} s", file=sys.stderr)
        if findings_file:
            for finding in report.findings:
                findings_file.write(json.dumps({"repo": repo, "commit": commit, **finding.to_json()}) + "\n")
        for site in judged:
            count(site, report.findings, tables, above_info, options.show)
    return show(tables, above_info)


def count(site, findings, tables, above_info, is_verbose):
    code = site["rule"].partition("-")[0]
    nearby_findings = [f for f in findings if f.file == site["file"] and abs(f.line - site["line"]) <= NEAR]
    same = [f for f in nearby_findings if f.rule.code == code]
    table = tables[code]
    verdict = site["verdict"]
    if verdict in BENIGN:
        warned = [f for f in (same if code.startswith("W") else nearby_findings) if f.level == "warn"]
        if warned:
            above_info.append(site)
            table["wrong"] += 1
            if is_verbose:
                print("WRONG ", site["repo"], f"{site['file']}:{site['line']}", site["rule"], "|", site["why"])
        table["wrong at info"] += bool(same) and not warned
        table["benign"] += 1
    elif verdict in ("true_positive", "true_positive_low"):
        kind = "low" if verdict.endswith("low") else "true"
        table[kind] += 1
        table[f"{kind} found"] += bool(same)
        table["warned"] += any(f.level == "warn" for f in same)
        if not same and is_verbose:
            nearby_codes = sorted({f.rule.code for f in nearby_findings})
            print(
                "MISSED",
                site["repo"],
                f"{site['file']}:{site['line']}",
                site["rule"],
                verdict,
                nearby_codes,
                "|",
                site["why"],
            )


def ratio(count, whole):
    return f"{count / whole:.2f}" if whole else "-"


def show(tables, above_info):
    columns = ("true", "true found", "low", "low found", "benign", "warned", "wrong")
    print(f"{'rule':6}" + "".join(f"{name:>11}" for name in columns) + f"{'recall':>8}{'precision':>10}")
    total = collections.Counter()
    for code in sorted(tables):
        table = tables[code]
        total.update(table)
        recall = ratio(table["true found"], table["true"])
        precision = ratio(table["warned"], table["warned"] + table["wrong"])
        print(f"{code[:6]:6}" + "".join(f"{table[name]:11}" for name in columns) + f"{recall:>8}{precision:>10}")
    groups = {"W101": ("W101",), "W2xx": tuple(c for c in tables if c.startswith("W2")), "W301+W302": ("W301", "W302")}
    for name, codes in groups.items():
        true = sum(tables[c]["true"] for c in codes)
        found_count = sum(tables[c]["true found"] for c in codes)
        print(f"recall {name}: {ratio(found_count, true)} ({found_count} of {true})")
    right, wrong = total["warned"], total["wrong"]
    print(f"precision of warnings: {ratio(right, right + wrong)} ({right} right, {wrong} wrong)")
    print(f"judged benign and reported above info: {len(above_info)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
