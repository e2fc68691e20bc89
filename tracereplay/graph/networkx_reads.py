"""What networkx reads of a graph beside the functions that it dispatches: in, arrays; out, views of a plain copy.

Writers, views and other functions that networkx does not dispatch read their graph's own attributes (``nodes(data=True)``,
``adj``, ``order()``). They are answered from a frozen copy that is made at the first such question and stays with its graph.
What would change the graph is refused.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

if TYPE_CHECKING:
    import networkx as nx

# Attributes of a networkx graph that the plain copy answers.
READ = frozenset(
    {
        "_adj", "_node", "_pred", "_succ", "adj", "adjacency", "degree", "edge_subgraph", "edges", "get_edge_data", "graph",
        "has_edge", "has_node", "has_predecessor", "has_successor", "in_degree", "in_edges", "name", "nbunch_iter", "neighbors",
        "nodes", "order", "out_degree", "out_edges", "pred", "reverse", "size", "subgraph", "succ", "to_directed",
        "to_undirected",
    }
)  # fmt: skip
# Those that change one.
CHANGE = frozenset(
    {
        "add_edge", "add_edges_from", "add_node", "add_nodes_from", "add_weighted_edges_from", "clear", "clear_edges",
        "remove_edge", "remove_edges_from", "remove_node", "remove_nodes_from", "update",
    }
)  # fmt: skip


class ReadByNetworkx:
    """A graph that networkx reads like one of its own and cannot change."""

    frozen: ClassVar[bool] = True

    def __new__(cls, *columns: Any, **named: Any) -> Any:
        """Networkx makes a new graph of a graph's kind by a call without arguments; it gets a plain one."""
        if columns or named:
            return super().__new__(cls)
        import networkx as nx  # noqa: PLC0415 - 0.2 s that no verb on the arrays needs

        return nx.DiGraph()

    def to_networkx(self) -> "nx.DiGraph[Any]":
        """A plain copy."""
        raise NotImplementedError

    @cached_property
    def plain(self) -> "nx.DiGraph[Any]":
        """The frozen copy that answers networkx. What is written into its dictionaries does not reach the graph."""
        import networkx as nx  # noqa: PLC0415 - 0.2 s that no verb on the arrays needs

        frozen: nx.DiGraph[Any] = nx.freeze(self.to_networkx())
        return frozen

    def copy(self, as_view: bool = False) -> "nx.DiGraph[Any]":
        """A plain copy that may be changed; ``as_view`` gives one that may not."""
        return self.plain.copy(as_view=True) if as_view else self.to_networkx()

    def __getitem__(self, node: Any) -> Any:
        return self.plain[node]

    if not TYPE_CHECKING:  # so that a misspelt attribute is still found

        def __getattr__(self, name: str) -> Any:
            if name in READ:
                return getattr(self.plain, name)
            if name in CHANGE:
                return _refuse
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _refuse(*_arguments: Any, **_named: Any) -> NoReturn:
    import networkx as nx  # noqa: PLC0415 - 0.2 s that no verb on the arrays needs

    raise nx.NetworkXError("graphs of tracereplay are read-only; change graph.copy()")


def nowhere() -> None:
    """Where columns are seen that belong to no graph."""


class ReadColumns:
    """Columns that networkx reads as the view of their name (``nodes`` or ``edges``) of the graph in which they stand.

    ``seen_in`` gives that graph: a weak reference, so that a graph goes with its last user.
    """

    __slots__ = ()
    view_name: ClassVar[str]
    seen_in: Callable[[], ReadByNetworkx | None]

    def _view(self) -> Any:
        graph = self.seen_in()
        if graph is None:
            raise ReferenceError(f"these {self.view_name} stand in no graph, or it is gone; keep the graph")
        return getattr(graph.plain, self.view_name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Networkx's view, such as ``graph.nodes(data=True)``."""
        return self._view()(*arguments, **named)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view())

    def __contains__(self, entry: object) -> bool:
        return entry in self._view()

    def __getitem__(self, entry: Any) -> Any:
        return self._view()[entry]

    def data(self, *arguments: Any, **named: Any) -> Any:
        """Networkx's ``data``: entries with their attributes."""
        return self._view().data(*arguments, **named)

    def items(self) -> Any:
        """Entries and their attributes."""
        return self._view().items()

    def keys(self) -> Any:
        """The entries."""
        return self._view().keys()

    def values(self) -> Any:
        """The attributes of each entry."""
        return self._view().values()

    def get(self, entry: Any, default: Any = None) -> Any:
        """The attributes of an entry."""
        return self._view().get(entry, default)
