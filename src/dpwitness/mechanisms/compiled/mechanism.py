"""A plain function as machine code."""

from typing import Any, Final

import numpy as np

from dpwitness.mechanisms.compiled.driver import load_driver
from dpwitness.mechanisms.compiled.scratch import SIZE, with_scratch
from dpwitness.mechanisms.layout import flat_names
from dpwitness.mechanisms.mechanism import Mechanism, Order, Rows, of_both, raised
from dpwitness.mechanisms.python import sfc64_state
from dpwitness.mechanisms.signature import Signature, own_copy
from dpwitness.neighbours import Data, Pair, as_array

NOT_STARTED: Final = np.int64(2**62)


class Refused(Exception):
    """Numba cannot compile a mechanism; the message is numba's."""


class CompiledMechanism(Mechanism):
    """A plain function as machine code; several threads may run it."""

    shard = 16_384
    threads = True
    compiled = True
    by_position = True

    def __init__(self, signature: Signature) -> None:
        super().__init__(signature)
        own = list(signature.parameters)
        names = {signature.data: "given", **{key: f"parameters[{own.index(key)}]" for key in own}}
        if signature.generator is not None:
            names[signature.generator] = "generator"
        self._values = tuple(
            _as_array(name, value) if isinstance(value, list) else value for name, value in signature.parameters.items()
        )
        self._arguments = [names[key] for key in signature.order]
        self._scratch = SIZE
        self._keep = True
        self._redirected = with_scratch(signature.function)
        self._load()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but machine code and what the interpreter runs: another process compiles for itself."""
        own = {name: value for name, value in vars(self).items() if name not in ("_fill", "plain", "_redirected")}
        return {**own, "_redirected": self._redirected is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._redirected = with_scratch(self.signature.function) if state["_redirected"] else None
        self._load()

    def _load(self) -> None:
        if self._redirected:
            self._fill = load_driver(self._redirected, ["scratch", *self._arguments], keep=self._keep)
        else:
            self._fill = load_driver(self.signature.function, self._arguments, keep=self._keep)

    @property
    def places(self) -> dict[int, str]:
        """As in `Mechanism`: compiled code writes outcomes that hold others flat."""
        return flat_names(self.width) if self.plain is not None and self.plain.flat else {}

    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """As in `Mechanism`; for a few runs, since it makes as many again that it throws away."""
        both = np.empty((2, *rows.shape))
        length = self.fill_pair(Pair(data, data), rng, both, start, coupled=False)
        rows[:] = both[0]
        return length

    def fill_pair(
        self,
        pair: Pair,
        rng: np.random.Generator,
        rows: Rows,
        start: int,
        *,
        coupled: bool,
        order: Order | None = None,
    ) -> int:
        """As in `Mechanism`; coupled runs need an SFC64 generator."""
        position = np.array([NOT_STARTED, 0])  # the number of the run, and what it has taken of the scratch memory
        # Apart, not in one block: an index out of bounds must not reach the other input.
        inputs = _arrays(pair)
        runs = rows.shape[1]
        state = sfc64_state(rng) if coupled else np.zeros(5, np.uint64)
        order = np.zeros(runs, np.uint8) if order is None else order
        try:
            both, memory = rows.reshape(2 * runs, -1), np.empty(self._scratch)
            length = self._fill(rng, state, coupled, order, *inputs, self._values, both, position, memory)
        except Exception as error:
            at = int(position[0])
            if at == NOT_STARTED:  # no run had begun: it was the compiler that raised
                if isinstance(error, OSError) and self._keep:  # the cache is full, or was removed: do without
                    self._keep = False
                    self._load()
                    return self.fill_pair(pair, rng, rows, start, coupled=coupled, order=order)
                if self._redirected:
                    self._redirected = None
                    self._load()
                    return self.fill_pair(pair, rng, rows, start, coupled=coupled, order=order)
                raise Refused(str(error) or type(error).__name__) from error
            side = pair.data if at < runs else pair.neighbour
            raise of_both(self.fill, pair, raised(self.name, error, start + at % runs, side)) from error
        return self.check_length(length, start)


def _arrays(pair: Pair) -> list[Any]:
    """Both inputs as arrays of one kind, or numbers. Raises `Refused` for anything else."""
    both = [as_array(given) for given in pair.sides]
    if both[0] is None or both[1] is None or both[0].ndim != both[1].ndim:
        raise Refused("its inputs are no numeric arrays of as many axes")
    if both[0].dtype != both[1].dtype:
        both = [given.astype(np.float64) for given in both if given is not None]
    return [given[()] if given.ndim == 0 else given for given in both if given is not None]


def _as_array(name: str, value: list[Any]) -> Any:
    """A list as an array of its own. Raises `Refused` for lists of different lengths, which no array holds."""
    try:
        return own_copy(np.asarray(value))
    except ValueError as error:
        raise Refused(f"the parameter {name} holds lists of different lengths") from error
