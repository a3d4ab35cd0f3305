"""Sparse arrays of scipy, as entries of a row."""

from typing import Any

from scipy import sparse

from dpwitness.events.encoding import symbol
from dpwitness.mechanisms.outcomes import Node, Row, append


@append.register(sparse.sparray)
@append.register(sparse.spmatrix)
def _(value: Any, row: Row, node: Node | None) -> None:
    row.put(symbol("sparse", value.format), node, "sparse")
    row.length(value.nnz, node, "stored entries")  # zeros among them
    row.put(symbol("stored entries", repr([axis.tolist() for axis in value.tocoo().coords])), node, "stored entries")
    row.add(value.toarray(), node)
