"""Make a failing scenario small: fewer steps, smaller bodies, a smaller schema, while it still fails alike."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from .histories import Scenario

Fails = Callable[[Scenario], Awaitable[bool]]
_REFERENCE = re.compile(r'(\$\{|"\$ref": "|"from": "|"after": )(\d+)')


async def shrink(scenario: Scenario, fails: Fails, budget: int = 150) -> Scenario:
    """A smaller scenario for which `fails` holds, found with at most `budget` trials, always the same one."""
    left = [budget]

    async def smaller(candidate: Scenario | None) -> bool:
        if candidate is None or left[0] <= 0:
            return False
        left[0] -= 1
        return await fails(candidate)

    size = max(1, len(scenario["steps"]) // 2)
    while size:
        start = 0
        while start < len(scenario["steps"]):
            candidate = without(scenario, set(range(start, start + size)))
            if await smaller(candidate):
                assert candidate is not None
                scenario = candidate
            else:
                start += size
        size //= 2
    for part in [f"steps.{index}" for index in range(len(scenario["steps"]))] + ["definition"]:
        scenario = await _smaller_values(scenario, part, smaller)
    return scenario


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


async def _smaller_values(scenario: Scenario, part: str, smaller: Fails) -> Scenario:
    """Leave out what can be left out of one step's query and body, or of the definition, the largest things first."""
    tried: set[str] = set()
    while True:
        for candidate in _reduced(scenario, part):
            key = json.dumps(candidate, sort_keys=True)
            if key not in tried:
                tried.add(key)
                if await smaller(candidate):
                    scenario = candidate
                    break
        else:
            return scenario


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
