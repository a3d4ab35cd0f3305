"""Runs on a Dask cluster are those of the threads of this process."""

import os
import signal
import threading

import numpy as np
import pytest
from distributed import Client, LocalCluster

import dpwitness as dpw
import elsewhere
from dpwitness.api.loop import confirm_events
from dpwitness.errors import ClusterLost, InvalidParameter, MechanismCrashed
from dpwitness.events import Interval
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import pairs
from dpwitness.problem import Effort
from dpwitness.runs import Dispatcher, Runner, cluster_of, executors
from elsewhere import Elsewhere
from running import interpreted, last, runner, sampled

PAIR = pairs((np.zeros(4), np.ones(4))).given[0]
EVENTS = [Interval(coordinate=0, low=0.5)]


def connected(**settings):
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", **settings}
    cluster = LocalCluster(silence_logs="ERROR", **settings)
    return cluster, Client(cluster, set_as_default=False)


@pytest.fixture(scope="module")
def client():
    """Workers on threads of this process."""
    cluster, client = connected(processes=False)
    yield client
    client.close()
    cluster.close()


def svt():
    return as_mechanism(load("svt"), PAIR.data, epsilon=1.0)


def python(function):
    return interpreted(function, PAIR)


def there(mechanism, cluster, **settings):
    pool = Dispatcher(mechanism, cluster_of(cluster), seed=1, threads=2)
    return Runner(mechanism=mechanism, seed=1, workers=2, pool=pool, **settings)


@pytest.mark.campaign
def test_a_check_on_a_cluster_is_that_of_this_process(client):
    settings = {"epsilon": 1.0, "seed": 5, "search_runs": 20_000, "runs": 40_000}
    on_it = dpw.check(load("laplace_mechanism"), cluster=client, **settings)
    here = dpw.check(load("laplace_mechanism"), **settings)
    assert on_it.counts == here.counts
    assert on_it.witness.description == here.witness.description
    assert on_it.notes == here.notes


@pytest.mark.filterwarnings("ignore::dpwitness.errors.SlowMechanism")
def test_an_executor_of_dask_is_its_cluster(client):
    executor = client.get_executor(workers=list(client.nthreads())[:1])
    few = {"epsilon": 1.0, "neighbours": [([0.0], [1.0])], "seed": 5, "runs": 200, "search_runs": 200}
    on_it = dpw.check(elsewhere.noisy, executor=executor, **few)
    assert on_it.counts == dpw.check(elsewhere.noisy, workers=1, **few).counts
    assert not executor._shutdown


@pytest.mark.parametrize("cluster", ["somewhere", 7, "localhost:8786", "local"])
def test_what_is_no_cluster_is_refused(cluster):
    with pytest.raises(InvalidParameter, match="cluster="):
        Effort(cluster=cluster)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0.3)
    with pytest.raises(ClusterLost, match=r"cluster='tcp://127\.0\.0\.1:9'"):
        cluster_of("tcp://127.0.0.1:9")


def test_what_was_counted_before_a_scheduler_was_lost_is_kept():
    mechanism = svt()

    class Lost(Elsewhere):
        """A cluster whose scheduler is gone after three answers."""

        def submit(self, task):
            if len(self.shards) == 3:
                raise ClusterLost("gone")
            return super().submit(task)

    pool = Dispatcher(mechanism, Lost(workers=1), seed=1)
    away = Runner(mechanism=mechanism, seed=1, workers=2, pool=pool)
    done = confirm_events(away, PAIR, EVENTS, 10**7)
    assert done.ended == "cluster lost"
    assert str(done.lost) == "gone"
    runs = done.totals[0].runs
    assert 0 < runs < 10**7
    here = runner(mechanism).confirm(PAIR, EVENTS, 10**7)
    assert done.totals == next(totals for totals in here if totals[0].runs >= runs)
    with pytest.raises(ClusterLost):
        confirm_events(away, PAIR, EVENTS, 10**7)  # nothing was counted


@pytest.fixture
def processes():
    """Two worker processes."""
    cluster, client = connected(processes=True)
    client.wait_for_workers(2, timeout=60)
    yield client
    client.close()
    cluster.close()


def killing(client):
    """Kill one of two worker processes, in half a second; its number.

    The other one is left alone, whether or not Dask starts a new one: a worker that is killed while it starts is not
    replaced.
    """
    killed = next(iter(client.run(os.getpid).values()))
    threading.Timer(0.5, os.kill, (killed, signal.SIGKILL)).start()
    return killed


@pytest.mark.campaign
@pytest.mark.parametrize("given", sampled([lambda client: client, Client.get_executor], 1))
def test_runs_that_no_seed_repeats_are_not_made_again_by_another_worker(processes, given):
    looks = there(python(elsewhere.slow_without_seed), given(processes)).confirm(PAIR, EVENTS, 20_000)
    next(looks)
    killing(processes)
    with pytest.raises(MechanismCrashed, match="no seed repeats"):
        last(looks)
