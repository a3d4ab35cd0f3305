"""A mechanism that runs in another interpreter, many runs a message."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpwitness.errors import MechanismCrashed, MechanismTimeout
from dpwitness.events.encoding import array_rows, symbol
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.mechanism import Rows
from dpwitness.mechanisms.outcomes.row import Place, Row, append, listed
from dpwitness.mechanisms.outcomes.tables import put_series
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.raising import raised
from dpwitness.mechanisms.remote.connection import Connection
from dpwitness.mechanisms.remote.function import Call, Remote, RemoteException, encoded_parameters, words_from
from dpwitness.mechanisms.remote.wire import RAISES, Tagged, packed
from dpwitness.mechanisms.signature import Signature
from dpwitness.mechanisms.summary import Attributes, Outcome
from dpwitness.neighbours import Data


class Sent(Draws):
    """The random words that runs in another interpreter begin from."""

    def __init__(self, rng: np.random.Generator, runs: int, *, own_streams: bool, global_too: bool) -> None:
        """As in `Draws`: the same words, so that a run draws there what it would draw here."""
        self.words = words_from(rng, runs if own_streams or global_too else 1)


class RemoteMechanism(PythonMechanism):
    """A function of another interpreter; parameters as in `PythonMechanism`, the function of the signature a `Remote`.

    Attributes of an output are read over there: only they are sent.
    """

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        assert isinstance(signature.function, Remote)
        self._remote = signature.function
        self._read = self._outcome.names if isinstance(self._outcome, Attributes) else ()
        self._parameters = encoded_parameters(self.name, signature.parameters)
        self._busy: set[Connection] = set()
        self._releases = 0

    def __getstate__(self) -> dict[str, Any]:
        """For another process: everything but what runs in this one."""
        return {**self.__dict__, "_busy": set()}

    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        """Random words that are sent: of each run its own, or of the first alone."""
        return Sent(rng, runs, own_streams=shared, global_too=self.draws_globally)

    def _fill_from(self, data: Data, draws: Draws, rows: Rows, start: int) -> int:
        """Make all runs in one message."""
        assert isinstance(draws, Sent)
        kept = self._kept.taken(data, start, rows)
        if kept is not None:
            return max(self._placed(value, rows[i], start + i) for i, value in enumerate(kept))
        call = Call(
            data=packed(self.handing.of(data)()),
            parameters=self._parameters,
            names=(self.signature.data, self.signature.generator),
            runs=len(rows),
            words=draws.words,
            outcome=self._read,
            errors=self.errors == "outcome",
            writes=self.handing.writeable,
            seed_globals=self.draws_globally,
        )
        releases = self._releases
        try:
            with self._remote.connection() as connection:
                outputs = self._asked(connection, call, releases)
        except RemoteException as error:
            raise raised(self.name, error, start + error.run, data) from error
        except (MechanismCrashed, MechanismTimeout) as error:
            raise type(error)(f"{self.name} on runs from {start} on: {error}") from error
        if isinstance(outputs, np.ndarray) and self._summary() is not None:
            outputs = outputs.tolist()
        if isinstance(outputs, np.ndarray):
            if not self.keyed:
                self._note_kind(float(outputs[0]), outputs[0], Row(), start)
            values = array_rows(outputs.reshape(-1, 1))
            assert values is not None  # floats
            rows[:, :1], rows[:, 1:] = values, np.nan
            return 1
        if not self.reproducible:
            self._kept.keep(data, start, outputs)
        return self.check_length(max(self._placed(value, rows[i], start + i) for i, value in enumerate(outputs)), start)

    def _asked(self, connection: Connection, call: Call, releases: int) -> Any:
        """What the other interpreter returns; meanwhile it can be ended by `release`."""
        self._busy.add(connection)
        try:
            if self._releases != releases:  # while the interpreter was started: nobody waits for these runs any more
                raise MechanismTimeout("the time was over before they began")
            return self._remote.asked(connection, call)
        finally:
            self._busy.discard(connection)

    def _placed(self, value: Any, row: Rows, run: int) -> int:
        """One outcome as a row of numbers."""
        if type(value) is Tagged and value.kind == RAISES:
            return self._write_exception(str(value.content), row)
        return self._write(value, row, run)

    def _summary(self) -> Callable[[Any], Any] | None:
        return None if self._read else self._outcome

    def release(self) -> None:
        """End what still runs, as after a deadline."""
        self._releases += 1
        for connection in tuple(self._busy):
            connection.end()


@append.register
def _(value: Tagged, row: Row, place: Place) -> None:
    if row.keyed and value.kind == "pandas Series":
        labels, values = value.content
        put_series(values, None if labels == list(range(len(values))) else labels, row, place)
        row.put(symbol("series", repr(labels)), row.at(place, "order of", "labels"), listed(labels))
        return
    row.put(symbol("tagged", value.kind), place, value.kind)
    row.add(value.content, place)
