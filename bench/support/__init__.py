"""Shared by the benchmarks: recorded results, server pairs, and the parts of docs/benchmarks.md."""
