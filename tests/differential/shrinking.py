"""Shrink a failing scenario: remove steps, parts of bodies and parts of the schema while it still fails."""

import asyncio
import itertools
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from recordings import Scenario

Fails = Callable[[Scenario], Awaitable[bool]]
_REFERENCE = re.compile(r'(\$\{|"\$ref": "|"from": "|"after": )(\d+)')


async def shrink(scenario: Scenario, fails: Fails, budget: int = 240, concurrency: int = 6) -> Scenario:
    """Return a smaller scenario for which `fails` is true, after about `budget` trials. The result is deterministic.

    Several trials run concurrently, because a real server is slow. The first candidate that fails is used.
    """
    remaining = budget

    async def find_failing(candidates: Iterator[Scenario]) -> Scenario | None:
        nonlocal remaining
        while remaining > 0 and (batch := list(itertools.islice(candidates, concurrency))):
            remaining -= len(batch)
            for candidate, has_failed in zip(batch, await asyncio.gather(*map(fails, batch)), strict=True):
                if has_failed:
                    return candidate
        return None

    size = len(scenario["steps"]) // 2
    while size:
        shorter = await find_failing(_remove_steps(scenario, size))
        if shorter is None:
            size //= 2
        else:
            scenario, size = shorter, min(size, len(shorter["steps"]) // 2)
    for part in [f"steps.{index}" for index in range(len(scenario["steps"]))] + ["definition"]:
        while (smaller := await find_failing(_reduce_part(scenario, part))) is not None:
            scenario = smaller
    return scenario


def _remove_steps(scenario: Scenario, size: int) -> Iterator[Scenario]:
    """Yield the scenario without `size` consecutive steps, starting at the end: it has the steps after the failure."""
    for start in range(len(scenario["steps"]) - size, -1, -max(1, size)):
        if (candidate := remove_steps(scenario, set(range(start, start + size)))) is not None:
            yield candidate


def remove_steps(scenario: Scenario, removed: set[int]) -> Scenario | None:
    """Return the scenario without some steps and those that refer to them. Return None if no step remains."""
    steps = scenario["steps"]
    texts = [json.dumps(step) for step in steps]
    removed = {index for index in removed if index < len(steps)}
    for index, step_text in enumerate(texts):
        if any(int(match[2]) in removed for match in _REFERENCE.finditer(step_text)):
            removed.add(index)
    remaining = [index for index in range(len(steps)) if index not in removed]
    if not remaining or not removed:
        return None
    positions = {old: new for new, old in enumerate(remaining)}
    renumbered = [_REFERENCE.sub(lambda m: f"{m[1]}{positions[int(m[2])]}", texts[index]) for index in remaining]
    return {**scenario, "steps": [json.loads(step_text) for step_text in renumbered]}


def _reduce_part(scenario: Scenario, scenario_part: str) -> Iterator[Scenario]:
    if scenario_part == "definition":
        for value in _remove_one(scenario.get("definition")):
            yield {**scenario, "definition": value}
        return
    index = int(scenario_part.rpartition(".")[2])
    step = scenario["steps"][index]
    for key in ("query", "body"):
        for value in _remove_one(step.get(key)):
            steps = list(scenario["steps"])
            steps[index] = {**step, key: value}
            yield {**scenario, "steps": steps}


def _remove_one(value: Any) -> Iterator[Any]:
    """Yield the value without one of its parts, outer parts first."""
    if isinstance(value, dict):
        for key in value:
            if key not in ("apiVersion", "kind", "from", "type", "name", "scope"):
                yield {other: item for other, item in value.items() if other != key}
        for key, item in value.items():
            for smaller in _remove_one(item):
                yield {**value, key: smaller}
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
        for index, item in enumerate(value):
            for smaller in _remove_one(item):
                yield [*value[:index], smaller, *value[index + 1 :]]
