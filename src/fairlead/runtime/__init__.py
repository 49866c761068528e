"""The operator runtime: controllers, contexts, leader election, metrics, health, events and shutdown."""
