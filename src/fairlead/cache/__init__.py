"""The local cache of Kubernetes objects: watches fill it, and the operator's own writes are added immediately."""

from fairlead.cache.cache import Cache as Cache
from fairlead.cache.cache import CacheReader as CacheReader
from fairlead.cache.cache import OwnWrite as OwnWrite
from fairlead.cache.entries import OwnerReference as OwnerReference
from fairlead.cache.informer import Change as Change
from fairlead.cache.informer import Handler as Handler
from fairlead.cache.informer import Snapshot as Snapshot
from fairlead.cache.reflector import WatchHealth as WatchHealth
