"""The file of kept evidence: an event, and its counts in each session of a history."""

import hashlib
import json
import math
import os
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from dpwitness.checks import kind
from dpwitness.codec import JsonFields, or_infinite
from dpwitness.errors import InvalidParameter, InvalidWitness
from dpwitness.evidence import Counts
from dpwitness.evidence.kept import KeptWealth, log_weight
from dpwitness.files import check_writable, shown
from dpwitness.neighbours import Data, Relation, input_to_json, proposed_pairs, relation_to_json
from dpwitness.results.fields import Count, Seed, read_json, read_result
from dpwitness.results.witness import Witness

#: LogWealth is the type of the logarithm of a wealth (nats): minus infinity for a wealth of 0, null in JSON.
LogWealth = Annotated[float, or_infinite(-math.inf)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSession(JsonFields):
    """The digest of a session's version, its seed, its counts, and the log of the factor on the wealth (nats)."""

    version: str
    seed: Seed
    counts: Counts
    log_e_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEvidence(JsonFields):
    """The evidence of a history of sessions against one claim; see `evidence.kept`.

    The counts in the file are not counted again, so whoever can write it can forge a refutation. A file restored from
    an older cache lacks the later sessions. No runs count twice in the history that goes on from it, and its level
    holds, unless outcomes decide which file is restored. The level holds for each of several histories that branch off
    one file, not for all together.

    `neighbours`: the digest of the relation and of D; `witness`: the event of the next session, its pair, claim and
    estimate; `sessions`: all sessions, also sessions of earlier histories, whose seeds are not used again; `first`: the
    number of sessions of earlier histories; `began`: the number of sessions before the sessions of the present event;
    `settled`: the log wealth (nats) won with earlier events of this history.

    Raises `ValueError` if two sessions have the same seed, or `first` and `began` are no numbers of sessions;
    `InvalidWitness` if no file can hold the inputs.
    """

    format: ClassVar[str] = "dpwitness-kept/1"
    json_keys: ClassVar[tuple[str, ...]] = (
        *("format", "neighbours", "witness", "log_wealth", "settled", "first", "began", "sessions"),
    )

    neighbours: str
    witness: Witness
    settled: LogWealth = -math.inf
    first: Count = 0
    began: Count = 0
    sessions: tuple[KeptSession, ...] = ()

    def __post_init__(self) -> None:
        if len({session.seed for session in self.sessions}) < len(self.sessions):
            raise ValueError("two sessions have one seed: their runs would count twice")
        if not self.first <= self.began <= len(self.sessions):
            raise ValueError(f"first={self.first} and began={self.began} must be numbers of sessions, first ≤ began")
        if self.witness.unreadable_inputs:
            raise InvalidWitness(f"no file can hold the inputs {self.witness.pair}")

    @classmethod
    def load(cls, path: object) -> "KeptFile":
        """The path of a file and its evidence; the path is absolute, as a mechanism may change the working folder.

        Raises `InvalidParameter` for a path of another type, `InvalidData` or `InvalidWitness` for a file that cannot
        be read or written.
        """
        place = Path(kind("keep", path, (str, os.PathLike), "the path of a file", InvalidParameter)).absolute()
        check_writable(place)
        if not place.exists():
            return place, None
        try:
            return place, read_result(cls, "kept evidence", read_json(place))
        except InvalidWitness as error:
            name, why = shown(place), str(error)
            named = why if why.startswith(name) else f"{name}: {why}"
            raise InvalidWitness(f"{named}; restore the file, or delete it to begin anew") from error

    def wealth(self, counts: Counts | None = None) -> KeptWealth:
        """The wealth of the history; with `counts`, the wealth during a further session with these counts so far."""
        begun, since = [], Counts()
        for k in reversed(range(self.began, len(self.sessions) + (counts is not None))):
            since = since if k == len(self.sessions) else self.sessions[k].counts + since
            begun.append((log_weight(k + 1 - self.first), since))
        if begun:
            begun[-1] = float(np.logaddexp(begun[-1][0], self.settled)), since
        begun = begun or [(self.settled, since)]
        return KeptWealth(estimate=self.witness.estimate, begun=tuple(begun), counts=counts or Counts())

    @property
    def log_wealth(self) -> LogWealth:
        """The log e-value of the history against its claim."""
        return self.wealth().log_e_value(self.witness.claim)

    @property
    def versions(self) -> dict[str, str]:
        """A text on each version of the history, by its digest: the number of its runs, and its log e-value (nats)."""
        found: dict[str, list[KeptSession]] = {}
        for session in self.sessions[self.first :]:
            found.setdefault(session.version, []).append(session)
        return {
            version: f"{version} ({sum(one.counts.runs for one in own):,} runs, "
            f"log e-value {sum(one.log_e_value for one in own):.1f})"
            for version, own in found.items()
        }

    def after(self, version: str, seed: int, counts: Counts) -> "KeptEvidence":
        """The evidence after a further session."""
        before, after = (self.wealth(some).log_e_value(self.witness.claim) for some in (Counts(), counts))
        session = KeptSession(version=version, seed=seed, counts=counts, log_e_value=after - before)
        return replace(self, sessions=(*self.sessions, session))

    def anew(self) -> "KeptEvidence":
        """The evidence of a new history with the same event, without wealth."""
        return replace(self, settled=-math.inf, first=len(self.sessions), began=len(self.sessions))


#: KeptFile is the path of a file and its evidence; the evidence is None if the file does not exist.
KeptFile: TypeAlias = tuple[Path, KeptEvidence | None]


def neighbours_digest(relation: Relation, data: Data | None) -> str:
    """A digest of the relation and of D; a relation without JSON counts by its class and its first 1,000 pairs."""
    written = relation_to_json(relation)
    if written is None:
        candidates = islice(proposed_pairs(relation, data), 1000)
        written = {
            type(relation).__name__: [[input_to_json(pair.data), input_to_json(pair.neighbour)] for pair in candidates]
        }
    given = None if data is None else input_to_json(data)
    text = json.dumps([written, given], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
