"""Run another project's test suite on a real and on the embedded API server, and print the results side by side.

    python scripts/suites/run.py controller-runtime
    python scripts/suites/run.py kr8s --only embedded

The sources come from the Go module proxy, crates.io or PyPI into the user's cache, or from a checkout that --checkout
names. None of their code is in this repository. Only tests that pass on the real server count. The exit status is 1
if one of them fails on the embedded server.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.suites.catalog import SUITES, Results, Suite, SuiteError

from fairlead.testing.envtest import folder as assets
from fairlead.testing.real import RealServer, cache_folder

SERVERS = ("real", "embedded")
CACHE = cache_folder().parent.parent / "suites"


@contextlib.contextmanager
def environment_for(suite: Suite, server: str) -> Iterator[dict[str, str]]:
    """Yield the environment of a suite: executables for envtest, or the kubeconfig of a running server."""
    if suite.access == "assets":
        if server == "embedded":
            assets.write_folder(assets.default_folder())
        yield {"KUBEBUILDER_ASSETS": str(assets.default_folder() if server == "embedded" else cache_folder())}
    elif server == "real":
        with RealServer() as real:
            real.start_controllers()
            yield {"KUBECONFIG": str(real.kubeconfig())}
    else:
        with serve_embedded(CACHE / "embedded.kubeconfig") as kubeconfig:
            yield {"KUBECONFIG": str(kubeconfig)}


@contextlib.contextmanager
def serve_embedded(kubeconfig: Path) -> Iterator[Path]:
    options = ["--authorization-mode", "RBAC", "--controllers", "gc,namespace", "--write-kubeconfig", str(kubeconfig)]
    process = subprocess.Popen([sys.executable, "-m", "fairlead", "serve", *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith("serving on"):
            if not line:
                raise SuiteError("the embedded server did not start")
        yield kubeconfig
    finally:
        process.terminate()
        process.communicate()


def run_on(suite: Suite, folder: Path, server: str) -> tuple[Results, float]:
    with environment_for(suite, server) as variables:
        started = time.monotonic()
        results = suite.run(folder, {**os.environ, **variables})
        return results, time.monotonic() - started


def print_comparison(suite: Suite, results: dict[str, tuple[Results, float]]) -> int:
    """Print the passed tests and the time of each server, and what fails on the embedded one only. Return how many."""
    print(f"{suite.title:44}" + "".join(f"{server:>10}" for server in results))
    for name, value in (("passed", "passed"), ("failed", "failed")):
        counts = [sum(state == value for state in found.values()) for found, _ in results.values()]
        print(f"  {name:42}" + "".join(f"{count:>10}" for count in counts))
    print(f"  {'seconds':42}" + "".join(f"{seconds:>10.0f}" for _, seconds in results.values()))
    if len(results) < len(SERVERS):
        worse = sorted(name for name, state in next(iter(results.values()))[0].items() if state == "failed")
        heading = "failed:"
    else:
        real, embedded = results["real"][0], results["embedded"][0]
        worse = sorted(name for name, state in real.items() if state == "passed" and embedded.get(name) != "passed")
        heading = "pass on the real server and not on the embedded one:"
    if worse:
        print(f"  {heading}")
        print("\n".join(f"    {name}" for name in worse))
    return len(worse)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--only", choices=SERVERS, help="run on one server")
    parser.add_argument("--checkout", type=Path, help="the suite's sources, instead of a download")
    options = parser.parse_args()
    suite = SUITES[options.suite]
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        folder = suite.prepare(CACHE, options.checkout)
        servers = [options.only] if options.only else SERVERS
        results = {server: run_on(suite, folder, server) for server in servers}
    except SuiteError as error:
        print(f"{suite.title}: {error}", file=sys.stderr)
        return 2
    record = {server: {"seconds": seconds, "tests": found} for server, (found, seconds) in results.items()}
    (CACHE / f"{options.suite}.json").write_text(json.dumps(record, indent=1))
    return 1 if print_comparison(suite, results) else 0


if __name__ == "__main__":
    sys.exit(main())
