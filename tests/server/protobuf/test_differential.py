"""Tests that every built-in kind, encoded with random values by k8s.io/api, is decoded as in Go."""

import base64
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gooracle import Oracle, binary

from fairlead.server import protobuf
from fairlead.server.golang import encoding
from fairlead.server.schema import builtin, codec

SEEDS = int(os.environ.get("FAIRLEAD_PROTOBUF_SEEDS", "4"))
# Go finds these errors at another stage, so with two errors in one body the other one is reported. Go reports "json: "
# for values without JSON, where a real server drops the connection.
LATER = ("json: ", "a time is out", "impossible Int", "invalid character", "unexpected end of JSON", "quantities must")
META = [("v1", "DeleteOptions"), ("apps/v1", "DeleteOptions")]
KINDS = [tuple(name.rsplit("/", 1)) for name in builtin.table()["roots"]] + META


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    path = binary(Path(__file__).parent)
    if isinstance(path, str):
        pytest.skip(path)
    running = Oracle(path)
    yield running
    running.close()


def schema(api_version: str, kind: str) -> Any:
    if kind == "DeleteOptions":
        return builtin.schema_of_type("meta.v1.DeleteOptions")
    group, _, version = api_version.rpartition("/")
    return builtin.schema_of_kind(group, version, kind)


def decode_embedded(body: bytes, api_version: str, kind: str) -> Any:
    """Return the object that the embedded server decodes, or its error message."""
    try:
        unwrapped = protobuf.unwrap(body, api_version, kind)
        obj = unwrapped.object()
        return codec.decode(schema(unwrapped.api_version, unwrapped.kind), obj).object
    except (protobuf.ProtoError, codec.DecodeError) as error:
        return str(error)


def normalize_go_answer(answer: Any) -> Any:
    """Return Go's object without the nulls of nil pointers, or its error message."""
    if "error" in answer:
        return answer["error"]
    obj = encoding.decode(json.dumps(answer["json"]).encode())[0]
    try:
        return codec.decode(schema(obj["apiVersion"], obj["kind"]), obj).object
    except codec.DecodeError as error:
        return str(error)


@pytest.mark.parametrize(("api_version", "kind"), KINDS, ids=lambda part: part)
def test_object_decodes_as_in_go(oracle: Oracle, api_version: str, kind: str) -> None:
    for seed in range(SEEDS):
        response = oracle.ask({"apiVersion": api_version, "kind": kind, "seed": seed})
        assert "error" not in response, response["error"]
        assert decode_embedded(base64.b64decode(response["body"]), api_version, kind) == normalize_go_answer(
            response
        ), f"seed {seed}"


@pytest.mark.parametrize(("api_version", "kind"), KINDS, ids=lambda part: part)
def test_broken_bytes_raise_the_same_error_as_in_go(oracle: Oracle, api_version: str, kind: str) -> None:
    rng = random.Random(f"{api_version}/{kind}")
    for seed in range(SEEDS):
        encoded = base64.b64decode(oracle.ask({"apiVersion": api_version, "kind": kind, "seed": seed})["body"])
        start = 7 + encoded[5]  # The offset after the type in the envelope.
        for _ in range(20):
            broken = bytearray(encoded)
            for _ in range(rng.randint(1, 3)):
                broken[rng.randrange(start, len(broken))] = rng.randrange(256)
            if rng.random() < 0.3:
                del broken[rng.randrange(start, len(broken)) :]
            body = bytes(broken)
            response = oracle.ask({"apiVersion": api_version, "kind": kind, "body": base64.b64encode(body).decode()})
            go_result, embedded_result = normalize_go_answer(response), decode_embedded(body, api_version, kind)
            if isinstance(go_result, str) and (
                go_result.startswith(LATER) or (isinstance(embedded_result, str) and embedded_result.startswith(LATER))
            ):
                continue
            assert embedded_result == go_result, body.hex()
