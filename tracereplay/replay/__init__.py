"""Re-time a graph: in, DependencyGraph and durations; out, Schedule."""
