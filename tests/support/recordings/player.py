"""Play a scenario: send its requests and return the normalized responses."""

import asyncio
import copy
import json
import re
from typing import Any

from fairlead.api.requests import HttpRequest
from recordings.files import Scenario
from recordings.normalization import Normalizer

SETTLE_SECONDS = 20
_REFERENCE = re.compile(r"\$\{([^}]+)\}")


class RequestSender:
    """Sends requests through a Transport like the recorder: with one User-Agent, and JSON by default."""

    def __init__(self, transport: Any, token: str | None = None) -> None:
        self.transport = transport
        self.token = token

    async def send(
        self,
        method: str,
        path: str,
        query: dict[str, Any] | None = None,
        body: Any = None,
        content_type: str | None = None,
        accept: str | None = None,
    ) -> tuple[int, Any, list[str]]:
        """Return the status code, the body and the warnings of the response."""
        encoded_body = None
        if body is not None:
            encoded_body = (body if isinstance(body, str) else json.dumps(body)).encode()
        headers = self._headers(accept, (content_type or "application/json") if body is not None else None)
        request = HttpRequest(method, path, query=_to_text(query), headers=headers, body=encoded_body)
        response = await self.transport.request(request)
        return response.status, _decode(response.body), response.warnings

    async def watch(
        self, path: str, query: dict[str, Any] | None, seconds: int = 1, accept: str | None = None
    ) -> tuple[int, Any, list[str]]:
        """Return the status code and the events of a watch that ends after some seconds."""
        query = {"watch": "true", "timeoutSeconds": str(seconds), **(query or {})}
        request = HttpRequest("GET", path, query=_to_text(query), headers=self._headers(accept))
        stream = await self.transport.stream(request)
        content = b""
        while chunk := await stream.read():
            content += chunk
        await stream.close()
        if stream.status != 200:
            return stream.status, _decode(content), []
        return 200, [json.loads(line) for line in content.split(b"\n") if line.strip()], []

    def _headers(self, accept: str | None = None, content_type: str | None = None) -> dict[str, str]:
        headers = {"Accept": accept or "application/json", "User-Agent": "conformance"}
        if content_type:
            headers["Content-Type"] = content_type
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers


async def play_scenario(transport: Any, scenario: Scenario, run_id: str) -> list[dict[str, Any]]:
    """Send the requests of a scenario in a new namespace. Return the normalized responses, one per step."""
    sender = RequestSender(transport, scenario.get("token"))
    namespace = f"conf-{run_id}"
    normalizer = Normalizer(namespace, run_id)
    values = _Values(namespace, run_id)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await sender.send("POST", "/api/v1/namespaces", body=body)
    results: list[dict[str, Any]] = []
    try:
        for step in scenario["steps"]:
            path, query, body = (values.fill(step.get(key)) for key in ("path", "query", "body"))
            if step["do"] == "SETTLE":
                values.responses.append(await _settle(sender, values, path, query, step))
                results.append({"settled": True})
                continue
            if step["do"] == "WATCH":
                code, response, warnings = await sender.watch(path, query, step.get("seconds", 1), step.get("accept"))
            else:
                code, response, warnings = await sender.send(
                    step["do"], path, query, body, step.get("type"), step.get("accept")
                )
            values.responses.append(response)
            result: dict[str, Any] = {"code": code, "body": normalizer.normalize(response)}
            if warnings:
                result["warnings"] = [normalizer.normalize_text(warning) for warning in warnings]
            results.append(result)
    finally:
        for path in scenario.get("cleanup", []):
            await sender.send("DELETE", values.fill(path))
        await sender.send("DELETE", f"/api/v1/namespaces/{namespace}")
    return results


async def _settle(sender: RequestSender, values: "_Values", path: str, query: Any, step: dict[str, Any]) -> Any:
    if "after" in step and (values.lookup(str(step["after"])) or {}).get("status") == "Failure":
        return None
    return await wait_until(sender, path, query, step.get("until", {}), step.get("accept"))


async def wait_until(
    sender: RequestSender, path: str, query: Any, until: dict[str, Any], accept: str | None = None
) -> Any:
    """Repeat a GET until its response has the values in `until`, at most for some seconds. Return the response."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SETTLE_SECONDS
    response = None
    while loop.time() < deadline:
        code, response, _ = await sender.send("GET", path, query, accept=accept)
        has_code = "code" not in until or code == until["code"]
        if has_code and all(_matches(response, key, value) for key, value in until.items() if key != "code"):
            break
        await asyncio.sleep(0.05)
    return response


class _Values:
    """Replaces the references in requests by values of earlier responses."""

    def __init__(self, namespace: str, run_id: str) -> None:
        self.namespace, self.run_id = namespace, run_id
        self.responses: list[Any] = []

    def fill(self, value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {"$ref"}:
                return copy.deepcopy(self.lookup(value["$ref"]))
            if set(value) == {"$set"}:
                return self._change(value["$set"])
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, str):
            filled = value.replace("{ns}", self.namespace).replace("{id}", self.run_id)
            return _REFERENCE.sub(lambda match: str(self.lookup(match.group(1))), filled)
        return value

    def lookup(self, path: str) -> Any:
        index, *parts = path.split(".")
        value = self.responses[int(index)]
        for part in parts:
            value = value[int(part)] if isinstance(value, list) else (value or {}).get(part)
            if value is None:
                return None
        return value

    def _change(self, changes: dict[str, Any]) -> Any:
        result = copy.deepcopy(self.lookup(changes["from"]))
        for path in changes.get("drop", []):
            parent, last = _find_parent(result, path, creates_missing=False)
            if isinstance(parent, list):
                parent.pop(int(last))
            else:
                parent.pop(last, None)
        for path, value in changes.items():
            if path not in ("from", "drop"):
                parent, last = _find_parent(result, path, creates_missing=True)
                parent[int(last) if isinstance(parent, list) else last] = self.fill(value)
        return result


def _find_parent(value: Any, path: str, *, creates_missing: bool) -> tuple[Any, str]:
    *parts, last = path.split(".")
    for part in parts:
        if isinstance(value, list):
            value = value[int(part)]
        else:
            value = value.setdefault(part, {}) if creates_missing else value.get(part, {})
    return value, last


def _matches(obj: Any, path: str, expected: Any) -> bool:
    value = obj
    for part in path.split("."):
        if isinstance(value, list):
            if part == "*":
                return bool(value)
            if keyed := re.match(r"^(\w+)=(\w+)$", part):
                value = next((item for item in value if str(item.get(keyed[1])) == keyed[2]), None)
            else:
                value = value[int(part)] if int(part) < len(value) else None
        else:
            value = (value or {}).get(part)
    return bool(value == expected)


def _to_text(query: dict[str, Any] | None) -> dict[str, str]:
    return {key: value if isinstance(value, str) else str(value) for key, value in (query or {}).items()}


def _decode(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        return {"$text": content.decode("utf-8", "replace")}
