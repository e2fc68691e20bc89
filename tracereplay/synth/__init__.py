"""Steps of a DLRM without a trace: in, an architecture, ranks and a platform; out, volumes and a dependency graph."""
