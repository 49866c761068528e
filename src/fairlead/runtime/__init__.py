"""Operator, controllers, Context, leader election, metrics, health, events, shutdown."""
