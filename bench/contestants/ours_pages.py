"""The same on a server that offers no initial events: lists in pages."""

from contestants import ours


class Contestant(ours.Contestant):
    labels = "pages"
