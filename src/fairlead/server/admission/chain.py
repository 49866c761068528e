"""The admission chain: it calls the enabled admission plugins in the order of a real server."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fairlead.server.admission.plugin import AdmissionAttributes, AdmissionPlugin
from fairlead.server.admission.plugins import find_enabled
from fairlead.server.registry.resource import Object, Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

Step = Callable[[AdmissionAttributes], None]
_Key = tuple[str, str, str, str]  # operation, group, plural, subresource


class AdmissionChain:
    """The enabled plugins of one server.

    As on a real server, `admit` runs before an object is prepared and validated, and `validate` afterwards. A write
    costs one lookup per phase, and the calls of the plugins that handle it.

    Raises ValueError if `enable` or `disable` has a name that no plugin of a real server has.
    """

    def __init__(self, server: "Server", enable: Iterable[str] = (), disable: Iterable[str] = ()) -> None:
        self.plugins: dict[str, AdmissionPlugin] = {
            name: create(server) for name, create in find_enabled(enable, disable)
        }
        self._dynamic = tuple(
            plugin for plugin in self.plugins.values() if type(plugin).is_dynamic is not AdmissionPlugin.is_dynamic
        )
        self._admitting: dict[_Key, tuple[Step, ...]] = {}
        self._validating: dict[_Key, tuple[Step, ...]] = {}

    def admit(self, attributes: AdmissionAttributes) -> Object:
        """Return the object with the changes of all plugins. Raises StatusError if a plugin rejects the write.

        For a DELETE the result is {}.
        """
        resource = attributes.resource
        key = attributes.operation, resource.group, resource.plural, attributes.subresource
        steps = self._admitting.get(key)
        if steps is None:
            plugins = self._find_plugins(attributes.operation, resource, attributes.subresource)
            steps = self._admitting[key] = tuple(
                plugin.admit for plugin in plugins if type(plugin).admit is not AdmissionPlugin.admit
            )
        for step in steps:
            step(attributes)
        if attributes.should_reinvoke:
            attributes.is_reinvocation = True
            for step in steps:
                step(attributes)
        return attributes.object or {}

    @property
    def is_dynamic(self) -> bool:
        """Whether a plugin wants to see every write, even one that changes nothing. It may then call a webhook."""
        return any(plugin.is_dynamic for plugin in self._dynamic)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise StatusError if a plugin rejects the write."""
        resource = attributes.resource
        key = attributes.operation, resource.group, resource.plural, attributes.subresource
        steps = self._validating.get(key)
        if steps is None:
            plugins = self._find_plugins(attributes.operation, resource, attributes.subresource)
            steps = self._validating[key] = tuple(
                plugin.validate for plugin in plugins if type(plugin).validate is not AdmissionPlugin.validate
            )
        for step in steps:
            step(attributes)

    def _find_plugins(self, operation: str, resource: Resource, subresource: str) -> list[AdmissionPlugin]:
        return [plugin for plugin in self.plugins.values() if plugin.handles(operation, resource, subresource)]
