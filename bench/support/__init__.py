"""Code that the benchmarks share: recorded results, pairs of servers, and the sections of docs/benchmarks.md."""
