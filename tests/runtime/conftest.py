"""The smallest server that a lease or an Event needs: named objects with versions, and a way to make it fail."""

import asyncio
import itertools

import pytest

from fairlead.api.errors import ApiError
from fairlead.api.objects import Object


def refusal(reason, code):
    return ApiError.of({"reason": reason, "code": code, "message": reason})


class OneObject:
    """Stands where a Client does. `delay` is how long each request takes; `fail` is raised by each while set."""

    def __init__(self):
        self.objects = {}
        self.log = []
        self.delay = 0.0
        self.fail = None
        self._versions = itertools.count(1)

    async def _arrive(self, verb):
        self.log.append(verb)
        await asyncio.sleep(self.delay)
        if self.fail:
            raise self.fail

    def _store(self, obj):
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(next(self._versions)), "uid": "u"}
        self.objects[obj["metadata"]["name"]] = obj
        return Object(obj)

    async def get(self, kind, name, namespace=None):
        await self._arrive("get")
        if name not in self.objects:
            raise refusal("NotFound", 404)
        return Object(self.objects[name])

    async def create(self, obj):
        await self._arrive("create")
        if obj["metadata"]["name"] in self.objects:
            raise refusal("AlreadyExists", 409)
        return self._store(dict(obj))

    async def replace(self, obj):
        await self._arrive("replace")
        name = obj["metadata"]["name"]
        if name not in self.objects:
            raise refusal("NotFound", 404)
        if obj["metadata"]["resourceVersion"] != self.objects[name]["metadata"]["resourceVersion"]:
            raise refusal("Conflict", 409)
        return self._store(dict(obj))

    async def patch(self, kind, name, namespace, patch, *, type):  # noqa: A002
        await self._arrive("patch")
        if name not in self.objects:
            raise refusal("NotFound", 404)
        return self._store({**self.objects[name], **patch})


@pytest.fixture
def server():
    return OneObject()
