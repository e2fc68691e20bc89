"""Event tables become a dependency graph: in, Job; out, DependencyGraph."""
