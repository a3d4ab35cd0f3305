"""An attack family is one file of any package, plus an entry point: the file below, and what it comes in by."""

import json
import sys

import pytest

import dpwitness as dpw
from dpwitness import proposals
from dpwitness.cli import main
from dpwitness.errors import UnknownAttack
from dpwitness.proposals import AttackFamily
from dpwitness.testing import check_attack

#: All that somebody writes who brings a family: a generator, a command, a target that names the generator.
FILE = '''
import json

import click
import numpy as np

from dpwitness import OutcomeSet, target
from dpwitness.proposals import Candidate
from dpwitness.proposals import AttackFamily
from dpwitness.neighbours import Pair, as_finite_numbers, queries


def magic_value(parameters, data, claim, runs):
    """One value of a million gives itself away: no search over inputs finds it."""
    pair = Pair(as_finite_numbers([777_777.0]), as_finite_numbers([777_778.0]), "the magic value, and its neighbour")
    yield Candidate(pair=pair, event=OutcomeSet([[2.0]]))


def add_command(commands):
    @commands.command("magic_values", short_help=FAMILY.summary)
    @click.option("--value", default=777_777.0)
    @click.option("--json", "as_json", is_flag=True)
    def run(value, as_json):
        found = remembering(np.random.default_rng(0), np.array([value]))
        print(json.dumps({"attack": "magic_values", "found": found}) if as_json else found)


@target(claim="none", neighbours=queries(1), source="made up", true_epsilon="∞", attack="magic_values.magic_value")
def remembering(rng, answers):
    return 2.0 if answers[0] == 777_777.0 else np.floor(2 * rng.random())


FAMILY = AttackFamily(
    name="magic_values",
    summary="finds a value that a mechanism remembers",
    generators={"magic_value": magic_value},
    add_command=add_command,
)
'''


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a distribution of one file with the given entry points, as pip would: two files more in a folder."""

    def install(text, *points, name="magic_attacks"):
        (tmp_path / f"{name}.py").write_text(text)
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("\n".join(["[dpwitness.attacks]", *points, ""]))
        return tmp_path

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    for module, value in list(sys.modules.items()):
        if str(getattr(value, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[module]


def test_a_family_of_another_package_comes_in_by_the_same_door(installed, capsys):
    installed(FILE, "magic_values = magic_attacks:FAMILY")
    assert set(proposals.registered()) == {"magic_values", "subset_sum", "table_builder", "threshold_testing"}

    from magic_attacks import FAMILY, remembering  # installed above

    check_attack(FAMILY)

    verdict = dpw.check(remembering, epsilon=1, claim=1, seed=1)
    assert isinstance(verdict, dpw.Violation)
    assert verdict.witness.pair.data.tolist() == [777_777.0]

    assert main(["attack", "magic_values", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"attack": "magic_values", "found": 2.0}
    assert main(["attack", "--help"]) == 0
    printed = capsys.readouterr()
    assert "finds a value that a mechanism remembers" in printed.out
    assert "through private threshold testing" in printed.out
    assert printed.err == ""


def test_the_generator_is_what_finds_it(installed):
    installed(FILE, "magic_values = magic_attacks:FAMILY")
    from magic_attacks import remembering

    verdict = dpw.check(remembering, epsilon=1, claim=1, seed=1, neighbours=dpw.queries(1), runs=20_000)
    assert isinstance(verdict, dpw.NotRefuted)  # another relation than the target's own: the attack is not asked


@pytest.mark.campaign
def test_a_broken_family_hides_no_other(installed, capsys):
    installed(
        "import no_such_module_xyz\n",
        "broken = magic_attacks:FAMILY",
        "odd = json:loads",
        "misnamed = dpwitness.reconstruction.subset_sum.candidates:FAMILY",
    )
    code = main(["attack", "subset_sum", "--size", "8", "--error", "0", "--seed", "1"])
    printed = capsys.readouterr()
    assert code == 0
    assert printed.out.startswith("RECOVERED 8 of 8 bits")
    broken, misnamed, odd = printed.err.splitlines()
    assert "warning: attack family 'broken' (magic_attacks:FAMILY of magic_attacks) cannot be loaded: Module" in broken
    assert "calls itself 'subset_sum': give the entry point and the family one name" in misnamed
    assert "attack family 'odd' (json:loads of magic_attacks) is function: register an AttackFamily" in odd
    assert main(["list"]) == 0  # what other packages register is loaded by `attack` alone
    assert capsys.readouterr().err == ""


@pytest.mark.campaign
def test_a_command_that_cannot_be_declared_hides_no_other(installed, capsys):
    text = FILE.replace('command("magic_values"', 'no_such_method("magic_values"')
    installed(text, "magic_values = magic_attacks:FAMILY")
    assert main(["attack", "subset_sum", "--size", "8", "--error", "0", "--seed", "1"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "warning: attack family 'magic_values' has a command that cannot be declared: AttributeError" in line


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("threshold_testings.gptt", "unknown attack family 'threshold_testings'.*'dpwitness.attacks' has threshold_"),
        ("xyz", "unknown attack family 'xyz'.*subset_sum and table_builder and threshold_testing"),
        ("", "unknown attack family ''"),
        ("table_builder.x", "'table_builder' has no generator of candidates 'x': name table_builder.own_mechanism or"),
        ("dpwitness.reconstruction.subset_sum.candidates:flipped_bit", "unknown attack family 'dpwitness'"),
    ],
)
def test_an_unknown_attack_says_what_there_is(name, message):
    with pytest.raises(UnknownAttack, match=message):
        proposals.attack_named(name)
    with pytest.raises(UnknownAttack, match="it has only a command"):
        AttackFamily(name="silent", summary="").generator("")


def test_the_default_and_the_only_generator_need_no_name():
    assert proposals.attack_named("subset_sum") is proposals.attack_named("subset_sum.own_mechanism")
    one, other = (lambda *_: ()), (lambda *_: ())
    assert AttackFamily(name="x", summary="", generators={"one": one}).generator("") is one
    with pytest.raises(UnknownAttack, match=r"'x' does not say which generator of candidates: name x.one or x.other"):
        AttackFamily(name="x", summary="", generators={"other": other, "one": one}).generator("")


def test_every_attack_that_a_target_names_is_there():
    from dpwitness.mechanisms.catalog import load, registered
    from dpwitness.targets import target_of

    named = {target_of(load(name)).attack for name in registered()} - {None}
    own = {proposals.attack_named("threshold_testing")}  # for mechanisms of the user's, so that no target names it
    assert {proposals.attack_named(name) for name in named} | own >= set(
        proposals.family_named("threshold_testing").generators.values()
    )
    assert len(named) == 6


def test_the_file_that_is_written_is_short():
    assert len(FILE.strip().splitlines()) <= 45
