"""The work queue: which object a controller reconciles next, with priorities, delays and back-off."""

from fairlead.queue.queue import KeyState as KeyState
from fairlead.queue.queue import Observer as Observer
from fairlead.queue.queue import Outcome as Outcome
from fairlead.queue.queue import Queue as Queue
from fairlead.queue.queue import QueueClosed as QueueClosed
from fairlead.queue.ready import Priority as Priority
