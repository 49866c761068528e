"""fairlead's cache on a server without initial events, so that it lists in pages."""

from contestants import ours


class Contestant(ours.Contestant):
    labels = "pages"
