"""The pytest plugin: fixtures for testing operators without Docker."""
