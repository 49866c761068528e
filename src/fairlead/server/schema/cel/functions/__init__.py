"""The functions that Kubernetes adds to CEL: their declared types and their implementations."""
