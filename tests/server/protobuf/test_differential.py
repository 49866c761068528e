"""Every built-in kind, filled at random and encoded by k8s.io/api itself, is read as Go reads it; broken bytes too."""

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
# Found at another time than Go finds it, so that of two faults the other one is told. The first is Go's for what it
# decodes and then has no JSON for: a real server breaks the connection.
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


def ours(body: bytes, api_version: str, kind: str) -> Any:
    """The object as the server goes on with it, or what it says against it."""
    try:
        said = protobuf.unwrap(body, api_version, kind)
        made = said.object()
        return codec.decode(schema(said.api_version, said.kind), made).object
    except (protobuf.ProtoError, codec.DecodeError) as error:
        return str(error)


def real(answer: Any) -> Any:
    """Go's object; a null for a pointer to nothing is read as the absence it is."""
    if "error" in answer:
        return answer["error"]
    made = encoding.decode(json.dumps(answer["json"]).encode())[0]
    try:
        return codec.decode(schema(made["apiVersion"], made["kind"]), made).object
    except codec.DecodeError as error:
        return str(error)


@pytest.mark.parametrize(("api_version", "kind"), KINDS, ids=lambda part: part)
def test_an_object_is_read_as_go_reads_it(oracle: Oracle, api_version: str, kind: str) -> None:
    for seed in range(SEEDS):
        answer = oracle.ask({"apiVersion": api_version, "kind": kind, "seed": seed})
        assert "error" not in answer, answer["error"]
        assert ours(base64.b64decode(answer["body"]), api_version, kind) == real(answer), f"seed {seed}"


@pytest.mark.parametrize(("api_version", "kind"), KINDS, ids=lambda part: part)
def test_broken_bytes_are_refused_as_go_refuses_them(oracle: Oracle, api_version: str, kind: str) -> None:
    chance = random.Random(f"{api_version}/{kind}")
    for seed in range(SEEDS):
        whole = base64.b64decode(oracle.ask({"apiVersion": api_version, "kind": kind, "seed": seed})["body"])
        named = 7 + whole[5]  # past where the envelope says what it holds
        for _ in range(20):
            broken = bytearray(whole)
            for _ in range(chance.randint(1, 3)):
                broken[chance.randrange(named, len(broken))] = chance.randrange(256)
            if chance.random() < 0.3:
                del broken[chance.randrange(named, len(broken)) :]
            body = bytes(broken)
            answer = oracle.ask({"apiVersion": api_version, "kind": kind, "body": base64.b64encode(body).decode()})
            theirs, mine = real(answer), ours(body, api_version, kind)
            if isinstance(theirs, str) and (
                theirs.startswith(LATER) or (isinstance(mine, str) and mine.startswith(LATER))
            ):
                continue
            assert mine == theirs, body.hex()
