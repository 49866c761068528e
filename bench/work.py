"""Measure the same controller, written with fairlead and with its peers, on both servers: `python bench/work.py`.

Each Page has a ConfigMap, a Service and a Deployment, a finalizer and a status. A foreign writer labels the pages and
annotates their children with GET and PUT. The programs are in bench/peers. Programs in Go and Rust are skipped if there
is no compiler. Requests are counted in the audit log of the server, in the same way on both servers.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.server_pair import Clock, RunningServer, embedded

import fairlead as fl
from fairlead.api.errors import ApiError, Conflict, NotFound
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.client.http import HttpTransport
from fairlead.client.locate import locate
from fairlead.testing.real import RealServer, missing
from support import recording

HERE = Path(__file__).parent
PEERS, BUILT = HERE / "peers", HERE.parent / ".venv/bench"
PEERS_BIN = HERE.parent / ".venv/peers/bin"
KOPF = PEERS / "kopf_pages.py"
Page = fl.kind("bench.fairlead.dev/v1", "Page")
CHILDREN = (fl.ConfigMap, fl.Service, fl.Deployment)
MARK = "bench.fairlead.dev/foreign"
STORMED, QUIET, PATIENCE, LONGEST = 20, 1.0, 240.0, 480.0  # seconds; the last for one contestant in all
TEXT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "pages.bench.fairlead.dev"},
    "spec": {
        "group": "bench.fairlead.dev",
        "scope": "Namespaced",
        "names": {"kind": "Page", "plural": "pages", "singular": "page", "listKind": "PageList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": TEXT, "status": TEXT}}},
            }
        ],
    },
}


CLOUDCOIL = "its controllers came with 0.8, which needs Python 3.14"


def programs(selected_prefix):
    """Build the selected programs. Return their commands for a namespace, and the reasons why others cannot run."""
    pages_go, pages_rust = BUILT / "pages-go", BUILT / "rust/release/pages"
    figures = {
        "fairlead": lambda ns: [sys.executable, "-m", "fairlead", "run", PEERS / "ours.py", "-n", ns],
        "controller-runtime, CreateOrUpdate": lambda ns: [pages_go, "-namespace", ns],
        "controller-runtime, apply": lambda ns: [pages_go, "-apply", "-namespace", ns],
        "kube-rs, apply": lambda ns: [pages_rust, ns],
        "kopf, lightkube's apply": lambda ns: [PEERS_BIN / "kopf", "run", "-q", "--standalone", "-n", ns, KOPF],
    }
    chosen = {name: command for name, command in figures.items() if name.startswith(selected_prefix)}
    absent = {"cloudcoil": CLOUDCOIL} if "cloudcoil".startswith(selected_prefix) else {}
    for tool, folder, build in (
        ("go", "go", ["go", "build", "-trimpath", "-o", pages_go, "."]),
        ("cargo", "rust", ["cargo", "build", "--release", "--quiet", "--target-dir", BUILT / "rust"]),
    ):
        tool_programs = [name for name in chosen if name.startswith({"go": "controller-", "cargo": "kube-rs"}[tool])]
        if not tool_programs:
            continue
        BUILT.mkdir(exist_ok=True)
        if shutil.which(tool) and not subprocess.run(build, cwd=PEERS / folder, check=False).returncode:
            continue
        absent |= dict.fromkeys(
            tool_programs, "it could not be built" if shutil.which(tool) else f"there is no {tool} here"
        )
    if not (PEERS_BIN / "kopf").exists():
        absent |= {name: "`make bench-peers` was not run" for name in chosen if name.startswith("kopf")}
    return {name: command for name, command in chosen.items() if name not in absent}, absent


class Audit:
    """Reads the audit log of a server: the requests of the controller, and the rejected ones of the foreign writer."""

    def __init__(self, path):
        self.file, self.begun = path.open(), ""
        self.requests, self.watched, self.refused = collections.Counter(), 0, 0

    def close(self):
        self.file.close()

    def read(self):
        for line in self.file:
            self.begun += line
            if not line.endswith("\n"):
                break  # the server is at it
            event, self.begun = json.loads(self.begun), ""
            agent, object_reference = event.get("userAgent", ""), event.get("objectRef")
            code = event.get("responseStatus", {}).get("code", 0)
            if agent == "bench-foreign":
                self.refused += code == 409
            elif (
                agent != "bench-harness"
                and object_reference
                and object_reference["resource"] not in ("leases", "events")
            ):
                if event["verb"] == "watch":
                    self.watched += object_reference["resource"] == "pages" and event["stage"] == "ResponseStarted"
                elif event["stage"] == "ResponseComplete" and not agent.startswith("kube-"):
                    self.requests[event["verb"], code] += 1
        return self.requests.copy()

    async def wait_until_quiet(self):
        """Wait until the controller has sent no request for a while."""
        before = None
        while before != (before := self.read()):  # noqa: ASYNC110 - another process
            await asyncio.sleep(QUIET)


class Pages:
    """The pages that a watch reports, and the time when each page became ready."""

    def __init__(self, client, namespace):
        self.client, self.namespace = client, namespace
        self.live, self.ready, self.changed = {}, {}, asyncio.Condition()

    async def watch_pages(self):
        first_list = await self.client.list(Page, self.namespace)
        async with self.client.watch(Page, self.namespace, resource_version=first_list.resource_version) as watch:
            async for frame in watch:
                obj = json.loads(frame.raw)
                name = obj["metadata"].get("name")
                if frame.type == "DELETED":
                    self.live.pop(name, None)
                elif name:
                    self.live[name] = obj
                    if obj.get("status", {}).get("message") == obj["spec"]["message"]:
                        self.ready.setdefault((name, obj["spec"]["message"]), time.perf_counter())
                async with self.changed:
                    self.changed.notify_all()

    async def until(self, true):
        async with self.changed, asyncio.timeout(PATIENCE):
            await self.changed.wait_for(true)

    async def all_ready(self, names, message):
        await self.until(lambda: all((name, message) in self.ready for name in names))


class ForeignWriter:
    """A foreign writer that labels pages and annotates their children, and records the acknowledged writes."""

    def __init__(self, client, namespace):
        self.client, self.namespace, self.acknowledged = client, namespace, {}

    async def label(self, name, value):
        patch = {"metadata": {"labels": {"foreign": value}}}
        await self.client.patch(Page, name, self.namespace, patch, type=PatchType.MERGE)

    async def annotate(self, kind, name, value):
        while True:
            try:
                obj = await self.client.get(kind, name, self.namespace)
                obj["metadata"].setdefault("annotations", {})[MARK] = value
                await self.client.replace(obj)
            except Conflict:
                continue
            except NotFound:
                await asyncio.sleep(0.05)
                continue
            self.acknowledged[kind, name] = value
            return

    async def write_once(self, name, value):
        """Label the page when it exists, and annotate each of its children, once."""
        await self.label(name, value)
        for kind in CHILDREN:
            await self.annotate(kind, name, value)
            await self.label(name, f"{value}-{kind.kind}")

    async def write_repeatedly(self, name):
        """Annotate the children of this page without a pause, until cancelled."""
        count = 0
        while True:
            for kind in CHILDREN:
                await self.annotate(kind, name, f"storm-{count}")
            count += 1

    async def count_lost_annotations(self):
        """Return how many acknowledged annotations have disappeared."""
        lost = 0
        for (kind, name), value in self.acknowledged.items():
            obj = await self.client.get(kind, name, self.namespace)
            lost += obj["metadata"].get("annotations", {}).get(MARK) != value
        return lost


async def work(running_server, audit, command, namespace, count):
    world, transport = World(), HttpTransport(*access(running_server))
    client = Client(transport, world, user_agent="bench-harness")
    foreign = ForeignWriter(Client(transport, world, user_agent="bench-foreign"), namespace)
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    pages = Pages(client, namespace)
    following = asyncio.create_task(pages.watch_pages())
    audit.read()
    watched = audit.watched
    log = tempfile.TemporaryFile()  # noqa: SIM115 - read when it failed
    process = subprocess.Popen(  # noqa: ASYNC220
        command, env={**os.environ, "KUBECONFIG": str(running_server.kubeconfig)}, stdout=log, stderr=subprocess.STDOUT
    )
    server, used = Clock(*running_server.pids), Clock(process.pid)
    result = {"server CPU s": -server.cpu()}
    try:
        async with asyncio.timeout(60):
            while audit.watched == watched:
                if process.poll() is not None:
                    raise ChildProcessError(f"it ended with {process.returncode} before it watched anything")
                await asyncio.sleep(0.05)
                audit.read()
        await audit.wait_until_quiet()
        names = [f"page-{number:03}" for number in range(count)]

        async def phase(name, object_count):
            """Return the requests since the last phase per object in `each`, and how many got a 409 or 422."""
            await audit.wait_until_quiet()
            new_requests = audit.requests - phase.before
            phase.before = audit.requests.copy()
            result[name] = {
                "requests": new_requests.total() / object_count,
                "refused": sum(n for (_, code), n in new_requests.items() if code in (409, 422)),
                "by verb and code": {f"{verb} {code}": n for (verb, code), n in sorted(new_requests.items())},
            }

        phase.before = audit.read()
        rejected_before = audit.refused
        started, cpu = time.perf_counter(), used.cpu()

        async def create(name):
            await client.create(Page(name, namespace, spec={"message": "one"}))
            await foreign.write_once(name, "burst")

        meddling = asyncio.gather(*map(create, names))
        await pages.all_ready(names, "one")
        result["burst s"] = max(pages.ready[name, "one"] for name in names) - started
        await meddling
        await phase("created", count)
        result["burst CPU ms"] = (used.cpu() - cpu) / count * 1e3

        cpu = used.cpu()
        for name in names:
            await foreign.label(name, "idle")
        await phase("nothing to do", count)
        result["idle CPU ms"] = (used.cpu() - cpu) / count * 1e3

        for name in names:
            await client.patch(Page, name, namespace, {"spec": {"message": "two"}}, type=PatchType.MERGE)
        await pages.all_ready(names, "two")
        await phase("message changed", count)

        for name in names:
            uid = (await client.get(fl.ConfigMap, name, namespace)).uid
            await client.delete(fl.ConfigMap, name, namespace, uid=uid)
            foreign.acknowledged.pop((fl.ConfigMap, name))
        await phase("child deleted", count)
        listed_maps = await client.list(fl.ConfigMap, namespace)
        result["children that came back"] = sum(obj.name in names for obj in listed_maps.items)

        singly = [f"single-{number}" for number in range(20)]
        durations = []
        for name in singly:
            created = time.perf_counter()
            await client.create(Page(name, namespace, spec={"message": "one"}))
            await pages.all_ready([name], "one")
            durations.append((pages.ready[name, "one"] - created) * 1e3)
        result["one at a time p50 ms"] = statistics.median(durations)
        await phase("one at a time", len(singly))

        stormed = names[:STORMED]
        storms = [asyncio.create_task(foreign.write_repeatedly(name)) for name in stormed]
        for message in ("three", "four"):
            for name in stormed:
                await client.patch(Page, name, namespace, {"spec": {"message": message}}, type=PatchType.MERGE)
            await pages.all_ready(stormed, message)
        for storm in storms:
            storm.cancel()
        await asyncio.gather(*storms, return_exceptions=True)
        for name in stormed:  # a PUT that was cut off may have landed: one more that is known to
            for kind in CHILDREN:
                await foreign.annotate(kind, name, "settled")
        await phase("storm", len(stormed))
        result["foreign data lost"] = await foreign.count_lost_annotations()
        result["foreign refused"] = audit.refused - rejected_before

        for name in names + singly:
            await client.delete(Page, name, namespace)
        await pages.until(lambda: not pages.live)
        await phase("deleted", count + len(singly))
        result["CPU s"], result["peak MB"] = used.cpu(), used.peak()
        result["server CPU s"] += server.cpu()
        return result
    except BaseException:
        log.seek(0)
        sys.stderr.write(log.read().decode(errors="replace")[-3000:])
        raise
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await transport.close()
        log.close()


async def run_with_time_limit(working):
    """Run one program with a time limit, so that it cannot delay the others."""
    async with asyncio.timeout(LONGEST):
        return await working


def access(running_server):
    figures = locate(World(), path=running_server.kubeconfig)
    return figures.cluster, figures.credentials


@contextlib.contextmanager
def server(kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "audit.log")
        if kind == "embedded":
            with embedded("--audit-log-path", str(path)) as running_server:
                yield running_server, path
        else:
            with RealServer(audit=path) as real:
                yield RunningServer.of(real), path


async def install(running_server):
    transport = HttpTransport(*access(running_server))
    client = Client(transport, World(), user_agent="bench-harness")
    await client.create(CRD)
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(ApiError, LookupError):
                await client.list(Page, "default")
                break
            await asyncio.sleep(0.1)
    await transport.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--only", action="append", help="a contestant whose name begins so; may be repeated")
    parser.add_argument("--server", choices=["embedded", "real"], help="one of them")
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/benchmarks.md")
    options = parser.parse_args()
    is_partial = bool(options.only or options.server)
    chosen, absent = programs(tuple(options.only or [""]))
    kinds = [options.server] if options.server else ["embedded", "real"]
    if "real" in kinds and (reason := missing()):
        print(f"the real server is left out: {reason}")
        kinds.remove("real")
    for kind in kinds:
        for name, reason in absent.items():
            print(f"{kind}: {name} is not run: {reason}", flush=True)
            if options.save:
                recording.save(
                    "work", {"pages": options.pages, "rows": {kind: {name: {"absent": reason}}}}, is_partial=is_partial
                )
        for number, (name, command) in enumerate(chosen.items()):
            with server(kind) as (running_server, path):  # a fresh one each, so that none works in another's litter
                asyncio.run(install(running_server))
                namespace = f"bench-{number}"
                try:
                    with contextlib.closing(Audit(path)) as audit:
                        result = asyncio.run(
                            run_with_time_limit(
                                work(running_server, audit, command(namespace), namespace, options.pages)
                            )
                        )
                    result |= {"failed": "", "absent": ""}
                except Exception as error:  # a timeout among them: the others have their turn
                    result = {"failed": f"{type(error).__name__} {error}".strip()}
            print(f"{kind}: {name}\n{json.dumps(result, indent=1)}", flush=True)
            if options.save:
                recording.save("work", {"pages": options.pages, "rows": {kind: {name: result}}}, is_partial=is_partial)


if __name__ == "__main__":
    main()
