"""`dpwitness attack subset_sum --oracle …`: what it says without the truth, and where it stops."""

import json
import math
import re

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dpwitness.cli import main
from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.machine import Deadline
from dpwitness.reconstruction.questions import Asking, Clock, Limits, system_of
from dpwitness.reconstruction.subset_sum import Oracle
from dpwitness.reconstruction.subset_sum import attack as attacks
from dpwitness.reconstruction.subset_sum.attack import Plan, question_counts, reconstruct
from dpwitness.reconstruction.subset_sum.oracle import FORM

MINE = """
import numpy as np
SECRET = np.random.default_rng(3).integers(0, 2, 40)
def noisy(rng):
    return lambda subset: subset @ SECRET + rng.normal(0, 2)
def bounded(rng):
    return lambda subset: subset @ SECRET + rng.uniform(-12, 12)
def exact(subset):
    return int(subset[:10] @ SECRET[:10])
def nothing(rng):
    return lambda subset: 10 + rng.normal(0, 30)
def silent(subset):
    return None
def huge(subset):
    return 1e308
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return f"{tmp_path / 'mine.py'}:"


def secret(size=40):
    return np.random.default_rng(3).integers(0, 2, 40)[:size]


def attack(capsys, *arguments, code=0):
    assert main(["attack", "subset_sum", *arguments]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out) if "--json" in arguments and not code else printed.out or printed.err


@pytest.mark.campaign
def test_an_adversary_is_least_squares_unless_named(capsys, mine):
    normal = attack(capsys, "--oracle", f"{mine}noisy", "--size", "40", "--seed", "1", "--json")
    assert normal["adversary"] == "least-squares"
    assert normal["recovered"] == secret().tolist()
    assert normal["probably_right"] > 39
    program = attack(
        capsys, "--oracle", f"{mine}bounded", "--size", "40", "--seed", "1", "--adversary", "polynomial", "--json"
    )
    assert program["adversary"] == "polynomial"
    assert 20 <= program["probably_right"] <= np.sum(program["recovered"] == secret())


@pytest.mark.campaign
def test_nothing_is_claimed_of_answers_that_say_nothing(capsys, mine):
    found = attack(capsys, "--oracle", f"{mine}nothing", "--size", "40", "--seed", "1", "--json")
    assert found["probably_right"] == 20
    assert found["probability"] == [0.5] * 40
    assert found["basis"].startswith("none: ")
    out = attack(capsys, "--oracle", f"{mine}nothing", "--size", "40", "--seed", "1")
    assert out.startswith(
        "NOTHING RECONSTRUCTED: as far as the answers tell, the 40 bits below are no better than guesses"
    )
    assert found["fresh_error"] == pytest.approx(30, rel=0.6)


def test_all_subsets(capsys, mine):
    line = ("--oracle", f"{mine}exact", "--size", "10", "--adversary", "exponential", "--error", "0", "--json")
    found = attack(capsys, *line)
    assert found["recovered"] == secret(10).tolist()
    assert (found["questions"], found["probably_right"]) == (1024, 10)
    assert "all subsets are 1024 questions" in attack(capsys, *line, "--budget", "1000", code=2)


@pytest.mark.campaign
def test_the_report_says_what_is_known(capsys, mine, tmp_path):
    truth = tmp_path / "truth.csv"
    truth.write_text("\n".join(map(str, secret())))
    plot = tmp_path / "bits.svg"
    line = ("--oracle", f"{mine}noisy", "--seed", "1")
    out = attack(capsys, *line, "--size", "40", "--plot", str(plot))
    assert re.match(r"RECONSTRUCTED 40 bits, 39\.\d of them right as far as the answers tell", out)
    assert re.search(r"scale        a bit of 1 adds (1|1\.0\d|0\.9\d) ± 0\.\d+ to fresh answers", out)
    assert "truth" not in out
    assert "".join(map(str, secret())) in out
    assert plot.read_text().lstrip().startswith("<?xml")
    out = attack(capsys, *line, "--data", str(truth), "--law", "gaussian", "--error", "4", "--queries", "300")
    assert re.search(r"truth        (39|40) of 40 bits are right", out)  # each is wrong with probability 0.015
    assert "330 questions" in out


def test_a_budget_gives_what_it_can(capsys, mine):
    line = ("--oracle", f"{mine}noisy", "--size", "40", "--seed", "1")
    found = attack(capsys, *line, "--budget", "200", "--json")
    assert found["questions"] == 200
    assert np.sum(found["recovered"] == secret()) >= 33
    assert "40 people take at least 52 questions" in attack(capsys, *line, "--budget", "50", code=2)
    message = attack(capsys, *line, "--budget", "200", "--queries", "300", code=2)
    assert "--queries 300 and 30 to check them need --budget 330" in message


def test_the_end_of_the_time_leaves_what_was_answered():
    end = [99]

    class Still:
        def now(self):
            return 0.0

        def sleep(self, pause):
            raise AssertionError("there is no rate to keep")

    class Ended(Deadline):
        __slots__ = ()

        @property
        def left(self):
            return float(end[0] > 0)

    def system(subset):
        end[0] -= 1
        return subset @ secret() + 0.25

    limits = Limits(deadline=Ended(0.0), clock=Still())
    asking = Asking(FORM, system_of(system, FORM, seed=1), limits=limits)
    found = reconstruct(asking, 1, Plan(size=40, used=500, fresh=50), Deadline(math.inf))
    assert found.stopped == "--max-time is over after 99 questions, and the attack asks more: allow more time"
    assert found.reconstruction.bits.tolist() == secret().tolist()
    end[0] = 29
    asking = Asking(FORM, system_of(system, FORM, seed=1), limits=limits)
    with pytest.raises(AttackStopped, match="over after 29 questions"):
        reconstruct(asking, 1, Plan(size=40, used=500, fresh=50), Deadline(math.inf))


def test_too_few_answers_to_reconstruct_from_say_what_stopped_them():
    """Of 215 answers 19 are kept for checking: 196 do not tell 200 bits."""
    asking = Asking(FORM, system_of(lambda subset: float(subset.sum()), FORM, seed=1), limits=Limits(budget=215))
    with pytest.raises(AttackStopped, match="--budget 215 is used up"):
        reconstruct(asking, 1, Plan(size=200, used=5000, fresh=500), Deadline(math.inf))


def test_a_plan_keeps_a_tenth_for_checking():
    assert question_counts(40, None, None) == (545, 55)
    assert question_counts(40, 100, None) == (100, 10)
    assert question_counts(40, None, 220) == (200, 20)
    with pytest.raises(InvalidParameter, match="--budget 50 is too small"):
        question_counts(40, None, 50)


def test_a_callable_of_one_subset_is_an_oracle():
    def system(subset, /):
        return float(subset.sum())

    oracle: Oracle = system
    assert oracle(np.ones(3, bool)) == 3.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--oracle", "noisy"), "--size is needed"),
        (("--oracle", "silent", "--size", "8"), "gave None for question 1, ["),
        (("--oracle", "huge", "--size", "8", "--json"), "1e+308 for question 1, ["),
        (("--oracle", "gone", "--size", "8"), "has no 'gone'"),
        (
            ("--oracle", "noisy", "--size", "64", "--queries", "20"),
            "--queries 20 are too few: 64 people take at least 66",
        ),
        (("--oracle", "noisy", "--size", "8", "--error", "3"), "--error says nothing of errors of an unknown law"),
        (("--failure", "0.1"), "--failure says how --allowed-queries is meant"),
        *(
            (("--allowed-queries", "0.25", option, "9"), f"{option} is of an attack")
            for option in ("--oracle", "--size", "--queries", "--data", "--budget", "--retries")
        ),
        (("--law", "binomial", "--error", "1e200"), "error=1e+200 must be a finite number of at least 0 and at most"),
        (("--law", "binomial", "--error", "1e10"), "error=10000000000.0 must be"),
        (
            ("--allowed-queries", "0.25", "--error", "1e200"),
            "error=1e+200 must be at least 1 and at most 1000; gaussian",
        ),
        (("--allowed-queries", "0.25", "--error", "3e4"), "error=30000.0 must be at least 1 and at most 1000"),
        (("--budget", "9"), "--budget is of an attack on your own system"),
        (("--retries", "9"), "--retries is of an attack on your own system"),
        (("--oracle", "noisy", "--size", "8", "--retries", "-1"), "--retries -1 must be at least 0"),
        (("--oracle", "noisy", "--size", "8", "--rate", "0"), "--rate 0 must be a positive number"),
        (("--oracle", "noisy", "--size", "8", "--adversary", "exponential"), "needs --error"),
        (("--answers", "none.csv", "--size", "8"), "cannot read none.csv"),
        (("--ask", "no/folder.csv", "--size", "8"), "there is no folder no"),
        (("--column", "x"), "give --data FILE.csv too"),
    ],
)
def test_bad_input_is_one_clear_line(capsys, mine, arguments, message):
    given = [mine + word if word in ("noisy", "silent", "huge", "gone") else word for word in arguments]
    err = attack(capsys, *given, code=2)
    assert message in err
    assert len(err.splitlines()) == 1


def test_data_must_be_bits(capsys, tmp_path):
    (tmp_path / "ages.csv").write_text("age\n31\n20\n")
    (tmp_path / "bits.csv").write_text("bit\n1\n0\n1\n")
    assert "must hold bits, 0 or 1, and not 31" in attack(capsys, "--data", str(tmp_path / "ages.csv"), code=2)
    assert "which has 3 bits" in attack(capsys, "--data", str(tmp_path / "bits.csv"), "--size", "4", code=2)
    assert "RECOVERED 3 of 3 bits" in attack(
        capsys, "--data", str(tmp_path / "bits.csv"), "--error", "0", "--seed", "1"
    )


class Quota:
    """Noisy sums; raises at some calls, and from one of them on."""

    def __init__(self, size, *calls, end=math.inf):
        self.bits, self.rng = np.random.default_rng(5).integers(0, 2, size), np.random.default_rng(6)
        self.calls, self.end, self.called = calls, end, 0

    def __call__(self, subset):
        self.called += 1
        if self.called in self.calls or self.called >= self.end:
            raise ConnectionError("quota")
        return self.bits[subset].sum() + self.rng.normal(0, 2)


def asked(system, size, **limits):
    asking = Asking(
        FORM, system_of(system, FORM, seed=1), limits=Limits(clock=Clock(sleep=lambda pause: None), **limits)
    )
    used, fresh = question_counts(size, None, limits.get("budget"))
    return reconstruct(asking, 1, Plan(size=size, used=used, fresh=fresh), Deadline(math.inf))


@pytest.mark.campaign
def test_an_unforeseen_quota_ends_in_the_result_of_the_answers_there_are():
    system = Quota(64, end=801)
    found = asked(system, 64)
    assert found.stopped.startswith("oracle Quota raised ConnectionError: quota at question 801, [")
    assert found.fresh_questions == 72
    assert np.sum(found.reconstruction.bits == system.bits) >= 62
    assert 58 < found.finding.probably_right <= np.sum(found.reconstruction.bits == system.bits)


@pytest.mark.campaign
def test_failed_calls_and_refused_questions_among_many_answers():
    system = Quota(64, 17, 300, *range(500, 504))  # the third question is refused however often it is asked
    found = asked(system, 64)
    assert found.stopped == "1 of 1,218 questions got no answer"
    assert np.array_equal(found.reconstruction.bits, system.bits)


def test_too_few_answers_say_how_many_it_takes():
    with pytest.raises(
        AttackStopped, match=r"^60 answers are too few: 64 people take at least 76; oracle Quota raised"
    ):
        asked(Quota(64, end=61), 64)


@pytest.mark.campaign
def test_all_answers_of_a_file_are_used_whatever_is_asked_today(capsys, mine, tmp_path):
    file = str(tmp_path / "kept.jsonl")
    line = ("--size", "40", "--ask", file, "--json")
    attack(capsys, "--oracle", f"{mine}noisy", "--seed", "1", *line)
    more = attack(capsys, *line, "--queries", "100")
    assert (more["questions"], more["stopped"]) == (600, None)
    assert more["recovered"] == secret().tolist()
    fewer = attack(capsys, *line, "--budget", "300")
    assert (fewer["questions"], fewer["recovered"]) == (600, secret().tolist())
    assert attack(capsys, *line, "--queries", "600")["waiting"] == 60  # and 60 to check with
    partial = attack(capsys, "--size", "40", "--answers", file, "--json", "--queries", "600")
    assert partial["stopped"].startswith("60 of 660 questions have no answer in the file")
    assert partial["recovered"] == secret().tolist()
    assert "--size" not in attack(capsys, "--size", "30", "--ask", file, code=2).split("size 40, not 30")[0]


def test_all_subsets_without_some_answers(capsys, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def system(subset):\n    return None if subset.sum() == 2 else int(subset[:3].sum())\n"
    )
    line = ("--size", "8", "--adversary", "exponential", "--error", "0", "--json")
    found = attack(capsys, "--oracle", f"{tmp_path / 'mine.py'}:system", *line)
    assert found["recovered"] == [1, 1, 1, 0, 0, 0, 0, 0]
    assert (found["unanswered"], found["probably_right"]) == (28, 4)
    assert found["basis"] == "none: Theorem 2 takes the answers to all subsets"


@pytest.mark.parametrize("own", [True, False])
def test_the_attack_solves_its_equations_on_one_core_and_leaves_the_system_its_own(capsys, mine, monkeypatch, own):
    """Threads of BLAS wait for each other where other work has their cores."""
    threads = {"decode": set(), "ask": set()}

    def noting(name, function):
        def called(*given, **more):
            threads[name] |= {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
            return function(*given, **more)

        return called

    monkeypatch.setattr(attacks, "least_squares_adversary", noting("decode", attacks.least_squares_adversary))
    monkeypatch.setattr(Asking, "ask_some", noting("ask", Asking.ask_some))
    with threadpool_limits(limits=2, user_api="blas"):
        attack(capsys, *(["--oracle", f"{mine}noisy"] if own else []), "--size", "40", "--seed", "1")
        assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {2}
    assert threads == {"decode": {1}, "ask": {2} if own else set()}
