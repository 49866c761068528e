"""The default port of the live page, where `fairlead why` looks for it."""

DEFAULT_UI_PORT = 8095
