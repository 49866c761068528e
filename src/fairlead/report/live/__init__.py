"""The live page of a running operator, and the same as JSON: controllers, queue, passes."""
