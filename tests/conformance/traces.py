"""Recorded traces of a real kube-apiserver: their format, how they are run, and how answers are compared.

A scenario is a list of steps; a step is one request and the answer that a real server gave, normalised:

    {"do": "PATCH", "path": "/api/v1/namespaces/{ns}/configmaps/a", "query": {"fieldManager": "m1"},
     "type": "application/apply-patch+yaml", "body": {...}, "expect": {"code": 200, "body": {...}}}

Values in path, query and body may refer to earlier answers: {"$ref": "0.metadata.resourceVersion"} as a whole value,
${0.metadata.uid} inside a string, {"$set": {"from": "0", "a.b": value, "drop": ["c"]}} for a changed copy. "{ns}" is
the scenario's own namespace, "{id}" a short word unique to the run. WATCH steps read a watch until the server ends it;
SETTLE steps wait until a GET answers what they say (unless the step `after` which they wait was refused) and are never
compared.

Compared are the status code and the whole body, after replacing what no two servers share (uids, versions, times,
random suffixes) by tokens that keep equality: a no-op that moved a resourceVersion is seen. Messages of failures and
warnings are compared only when asked for.
"""

import asyncio
import copy
import json
import re
from pathlib import Path
from typing import Any

from fairlead.api.requests import HttpRequest

CORPUS = Path(__file__).parent / "corpus"
SETTLE_SECONDS = 20

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")  # within a text
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_AGE = re.compile(r"^(\d+[smhdy]){1,2}$")
_JWT = re.compile(r"^eyJ[\w-]+\.[\w-]+\.[\w-]+$")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_REFERENCE = re.compile(r"\$\{([^}]+)\}")


def load(files=None):
    """Every scenario of these files (of the whole corpus by default), each with the `file` it is from."""
    scenarios = []
    for path in map(Path, files or sorted(CORPUS.glob("*.json"))):
        scenarios += [{**scenario, "file": path.stem} for scenario in json.loads(path.read_text())]
    return scenarios


class Caller:
    """Requests through a Transport, as the recordings were made: one User-Agent, JSON unless a step says otherwise."""

    def __init__(self, transport, token=None):
        self.transport = transport
        self.token = token

    def headers(self, accept=None, content_type=None):
        headers = {"Accept": accept or "application/json", "User-Agent": "conformance"}
        if content_type:
            headers["Content-Type"] = content_type
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    async def call(self, method, path, query=None, body=None, content_type=None, accept=None):
        data = None
        if body is not None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            content_type = content_type or "application/json"
        else:
            content_type = None
        headers = self.headers(accept, content_type)
        reply = await self.transport.request(HttpRequest(method, path, query=texts(query), headers=headers, body=data))
        return reply.status, decoded(reply.body), reply.warnings

    async def watch(self, path, query, seconds=1, accept=None):
        asked = {"watch": "true", "timeoutSeconds": str(seconds), **(query or {})}
        stream = await self.transport.stream(HttpRequest("GET", path, query=texts(asked), headers=self.headers(accept)))
        raw = b""
        while chunk := await stream.read():
            raw += chunk
        await stream.close()
        if stream.status != 200:
            return stream.status, decoded(raw), []
        return 200, [json.loads(line) for line in raw.split(b"\n") if line.strip()], []


def texts(query):
    return {key: value if isinstance(value, str) else str(value) for key, value in (query or {}).items()}


def decoded(raw):
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return {"$text": raw.decode("utf-8", "replace")}


async def run(transport, scenario, ident):
    """Run a scenario; the normalised answers, one a step."""
    caller = Caller(transport, scenario.get("token"))
    ns = f"conf-{ident}"
    names = Names(ns, ident)
    own = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}
    await caller.call("POST", "/api/v1/namespaces", body=own)
    answers, seen = [], []
    try:
        for step in scenario["steps"]:
            path, query, body = (fill(step.get(key), answers, ns, ident) for key in ("path", "query", "body"))
            if step["do"] == "SETTLE":
                refused = "after" in step and (lookup(str(step["after"]), answers) or {}).get("status") == "Failure"
                answers.append(None if refused else await settled(caller, path, query, step))
                seen.append({"settled": True})
                continue
            if step["do"] == "WATCH":
                code, out, warnings = await caller.watch(path, query, step.get("seconds", 1), step.get("accept"))
            else:
                code, out, warnings = await caller.call(
                    step["do"], path, query, body, step.get("type"), step.get("accept")
                )
            answers.append(out)
            got = {"code": code, "body": names.normal(out)}
            if warnings:
                got["warnings"] = [names.text(w) for w in warnings]
            seen.append(got)
    finally:
        for path in scenario.get("cleanup", []):
            await caller.call("DELETE", fill(path, answers, ns, ident))
        await caller.call("DELETE", f"/api/v1/namespaces/{ns}")
    return seen


async def settled(caller, path, query, step):
    until = step.get("until", {})
    loop = asyncio.get_running_loop()
    end = loop.time() + SETTLE_SECONDS
    out = None
    while loop.time() < end:
        code, out, _ = await caller.call("GET", path, query, accept=step.get("accept"))
        held = "code" not in until or code == until["code"]
        if held and all(matches(out, key, value) for key, value in until.items() if key != "code"):
            break
        await asyncio.sleep(0.05)
    return out


def mismatches(scenario, seen, messages=False):
    """(step, what is asked, path, wanted, got) wherever an answer differs from the recorded one."""
    for index, (step, got) in enumerate(zip(scenario["steps"], seen, strict=True)):
        if step["do"] == "SETTLE":
            continue
        want = dict(step["expect"])
        if not messages:
            want.pop("warnings", None)
            got = {key: value for key, value in got.items() if key != "warnings"}
        for path, wanted, given in differences(want, got, "", messages):
            yield index, f"{step['do']} {step['path']}", path, wanted, given


def told(mismatch):
    index, asked, path, wanted, got = mismatch
    lines = [f"  step {index} {asked}: {path}"]
    return "\n".join([*lines, f"      want {json.dumps(wanted)[:400]}", f"      got  {json.dumps(got)[:400]}"])


class Names:
    """Tokens that keep equality between values that differ from run to run."""

    def __init__(self, ns, ident):
        self.ns, self.ident = ns, ident
        self.uids, self.versions, self.suffixes = {}, {}, {}

    def token(self, table, prefix, value):
        return table.setdefault(value, f"<{prefix}{len(table)}>")

    def text(self, text):
        text = text.replace(self.ns, "{ns}").replace(self.ident, "{id}")
        return _UID.sub(lambda m: self.token(self.uids, "uid", m.group()), text)

    def normal(self, value, key=None):
        if isinstance(value, dict):
            return self._map(value)
        if isinstance(value, list):
            return [self.normal(v, key) for v in value]
        return self._string(value, key) if isinstance(value, str) else value

    def _map(self, value):
        out = {}
        kind = str(value.get("kind", ""))
        shared = kind.endswith("List") or kind == "Table" or value.get("type") == "BOOKMARK"
        # In one order whatever order the server wrote, or two servers would number their tokens differently.
        for key, item in sorted(value.items(), key=lambda kv: (kv[0] == "managedFields", kv[0])):
            if shared and key in ("metadata", "object") and isinstance(item, dict):
                item = without_version(item)
            if key == "managedFields" and isinstance(item, list):
                entries = [self.normal(entry) for entry in item]
                out[key] = sorted(entries, key=lambda e: tuple(e.get(part, "") for part in _ENTRY))
            else:
                out[self.text(key)] = self.normal(item, key)
        prefix = value.get("generateName")
        if prefix and isinstance(value.get("name"), str) and value["name"].startswith(prefix):
            out["name"] = self.text(prefix) + self.token(self.suffixes, "suffix", value["name"])
        return out

    def _string(self, value, key):
        if key == "resourceVersion" and value and value != "0":
            return self.token(self.versions, "rv", value)
        if _TIME.match(value):
            return "<time>"
        if key == "continue" and value:
            return "<continue>"
        if key == "cells":
            if _AGE.match(value):
                return "<age>"
            for name, token in self.suffixes.items():
                value = value.replace(name, token)
        if _JWT.match(value):
            return "<token>"
        if key == "message":  # prose, not compared by default: it must not be what numbers a uid
            value = _UID.sub(lambda m: self.uids.get(m.group(), "<uid?>"), value)
        return self.text(value)


_ENTRY = ("manager", "operation", "subresource", "apiVersion")


def without_version(value):
    """A list's or a bookmark's metadata without the store's own version, which any other writer moves."""
    value = {k: v for k, v in value.items() if k not in ("resourceVersion", "remainingItemCount")}
    if isinstance(value.get("metadata"), dict):
        value["metadata"] = without_version(value["metadata"])
    return value


def lookup(path, answers):
    first, *parts = path.split(".")
    value = answers[int(first)]
    for part in parts:
        value = value[int(part)] if isinstance(value, list) else (value or {}).get(part)
        if value is None:
            return None
    return value


def fill(value: Any, answers, ns, ident):
    """A step's value with its references filled in."""
    if isinstance(value, dict):
        if set(value) == {"$ref"}:
            return copy.deepcopy(lookup(value["$ref"], answers))
        if set(value) == {"$set"}:
            return changed(value["$set"], answers, ns, ident)
        return {fill(k, answers, ns, ident): fill(v, answers, ns, ident) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, answers, ns, ident) for v in value]
    if isinstance(value, str):
        text = value.replace("{ns}", ns).replace("{id}", ident)
        return _REFERENCE.sub(lambda m: str(lookup(m.group(1), answers)), text)
    return value


def changed(spec, answers, ns, ident):
    base = copy.deepcopy(lookup(spec["from"], answers))
    for path in spec.get("drop", []):
        holder, last = walk(base, path, make=False)
        holder.pop(int(last) if isinstance(holder, list) else last, *([] if isinstance(holder, list) else [None]))
    for path, value in spec.items():
        if path not in ("from", "drop"):
            holder, last = walk(base, path, make=True)
            holder[int(last) if isinstance(holder, list) else last] = fill(value, answers, ns, ident)
    return base


def walk(value, path, *, make):
    *parts, last = path.split(".")
    for part in parts:
        if isinstance(value, list):
            value = value[int(part)]
        else:
            value = value.setdefault(part, {}) if make else value.get(part, {})
    return value, last


def matches(obj, path, want):
    value = obj
    for part in path.split("."):
        if isinstance(value, list):
            if part == "*":
                return bool(value)
            if keyed := re.match(r"^(\w+)=(\w+)$", part):
                value = next((x for x in value if str(x.get(keyed[1])) == keyed[2]), None)
            else:
                value = value[int(part)] if int(part) < len(value) else None
        else:
            value = (value or {}).get(part)
    return value == want


def differences(want, got, path="", messages=False):
    """(path, wanted, got) wherever two normalised answers differ."""
    if isinstance(want, dict) and isinstance(got, dict):
        failed = want.get("kind") == "Status" and want.get("status") == "Failure" and not messages
        out = []
        for key in sorted(set(want) | set(got)):
            at = f"{path}.{key}"
            if failed and key == "message":
                continue
            if failed and key == "details":
                out += differences(_causes(want.get(key)), _causes(got.get(key)), at)
            elif key not in want:
                out.append((at, "absent", got[key]))
            elif key not in got:
                out.append((at, want[key], "absent"))
            else:
                out += differences(want[key], got[key], at, messages)
        return out
    if isinstance(want, list) and isinstance(got, list):
        out = [(f"{path}.length", len(want), len(got))] if len(want) != len(got) else []
        for index, (w, g) in enumerate(zip(want, got, strict=False)):
            out += differences(w, g, f"{path}[{index}]", messages)
        return out
    if path.endswith(".message") and isinstance(want, str) and isinstance(got, str):
        want, got = _MOMENT.sub("<time>", want), _MOMENT.sub("<time>", got)
    return [] if want == got and type(want) is type(got) else [(path or ".", want, got)]


def _causes(details):
    """Details with their causes as a set of (reason, field): a real server's order is random."""
    causes = (details or {}).get("causes") or []
    shown = sorted(json.dumps({k: c.get(k) for k in ("reason", "field")}, sort_keys=True) for c in causes)
    return {**(details or {}), "causes": shown}
