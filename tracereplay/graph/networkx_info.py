"""What networkx is told of this backend when networkx itself is imported: words only, so that nothing is loaded for it."""

from typing import Any

# The functions that run on the arrays, and what there is to know beside networkx's own description.
ON_ARRAYS = {
    "topological_sort": "",
    "topological_generations": "",
    "is_directed_acyclic_graph": "",
    "has_cycle": "",
    "ancestors": "",
    "descendants": "",
    "has_path": "",
    "dag_longest_path": "`weight` is the time from start to start in ns along an edge; `lag_ns` is its lag.",
    "dag_longest_path_length": "`weight` is the time from start to start in ns along an edge; `lag_ns` is its lag.",
}


def describe() -> dict[str, Any]:
    """The backend as the entry point ``networkx.backend_info`` describes it."""
    return {
        "backend_name": "tracereplay",
        "project": "tracereplay",
        "package": "tracereplay",
        "short_summary": "Dependency graphs of training jobs in arrays; other functions run on a converted copy.",
        "functions": {name: {"additional_docs": text} if text else {} for name, text in ON_ARRAYS.items()},
    }
