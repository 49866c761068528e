"""Find unsafe writes in the source of Kubernetes controllers. See docs/how-to/lint-a-controller.md.

Nothing here imports the framework or a server: linting works without their dependencies.
"""
