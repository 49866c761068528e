"""Make a failing scenario small: fewer steps, smaller bodies, a smaller schema, while it still fails alike."""

import asyncio
import itertools
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from .histories import Scenario

Fails = Callable[[Scenario], Awaitable[bool]]
_REFERENCE = re.compile(r'(\$\{|"\$ref": "|"from": "|"after": )(\d+)')


async def shrink(scenario: Scenario, fails: Fails, budget: int = 240, at_once: int = 6) -> Scenario:
    """A smaller scenario for which `fails` holds, found with about `budget` trials, always the same one.

    Trials are made `at_once`, and the first in order that holds is taken: a real server takes its time to answer.
    """
    left = [budget]

    async def first(candidates: Iterator[Scenario]) -> Scenario | None:
        while left[0] > 0 and (batch := list(itertools.islice(candidates, at_once))):
            left[0] -= len(batch)
            for candidate, held in zip(batch, await asyncio.gather(*map(fails, batch)), strict=True):
                if held:
                    return candidate
        return None

    size = len(scenario["steps"]) // 2
    while size:
        shorter = await first(_shorter(scenario, size))
        if shorter is None:
            size //= 2
        else:
            scenario, size = shorter, min(size, len(shorter["steps"]) // 2)
    for part in [f"steps.{index}" for index in range(len(scenario["steps"]))] + ["definition"]:
        while (smaller := await first(_reduced(scenario, part))) is not None:
            scenario = smaller
    return scenario


def _shorter(scenario: Scenario, size: int) -> Iterator[Scenario]:
    """The scenario without so many steps in a row, the last first: what follows the failing step goes at once."""
    for start in range(len(scenario["steps"]) - size, -1, -max(1, size)):
        if (candidate := without(scenario, set(range(start, start + size)))) is not None:
            yield candidate


def without(scenario: Scenario, gone: set[int]) -> Scenario | None:
    """The scenario without some steps and those that refer to them; None if nothing is left."""
    steps = scenario["steps"]
    texts = [json.dumps(step) for step in steps]
    gone = {index for index in gone if index < len(steps)}
    for index, text in enumerate(texts):
        if any(int(match[2]) in gone for match in _REFERENCE.finditer(text)):
            gone.add(index)
    kept = [index for index in range(len(steps)) if index not in gone]
    if not kept or not gone:
        return None
    place = {old: new for new, old in enumerate(kept)}
    made = [_REFERENCE.sub(lambda m: f"{m[1]}{place[int(m[2])]}", texts[index]) for index in kept]
    return {**scenario, "steps": [json.loads(text) for text in made]}


def _reduced(scenario: Scenario, part: str) -> Iterator[Scenario]:
    if part == "definition":
        for value in _cut(scenario.get("definition")):
            yield {**scenario, "definition": value}
        return
    index = int(part.rpartition(".")[2])
    step = scenario["steps"][index]
    for key in ("query", "body"):
        for value in _cut(step.get(key)):
            steps = list(scenario["steps"])
            steps[index] = {**step, key: value}
            yield {**scenario, "steps": steps}


def _cut(value: Any) -> Iterator[Any]:
    """The value with one thing less, from the outside in."""
    if isinstance(value, dict):
        for key in value:
            if key not in ("apiVersion", "kind", "from", "type", "name", "scope"):
                yield {other: item for other, item in value.items() if other != key}
        for key, item in value.items():
            for less in _cut(item):
                yield {**value, key: less}
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
        for index, item in enumerate(value):
            for less in _cut(item):
                yield [*value[:index], less, *value[index + 1 :]]
