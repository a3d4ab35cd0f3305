"""Help, the overview, the options that all commands share."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import commands, parsed, refusal

import dpwitness as dpw
from dpwitness.cli import main
from dpwitness.cli.console import EXIT_CODES

COMMANDS = {" ".join(words): inner for words, inner in commands()}
#: What runs nothing.
IDLE = {"list", "attack", "compare", "doctor", "init", "one-run", "report"}
RUNNING = sorted(set(COMMANDS) - IDLE)


@pytest.mark.parametrize("name", ["list", "compare", "doctor", "init", "one-run", *RUNNING])
def test_help_has_examples_that_parse_and_exit_codes(capsys, name):
    assert main([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: dpwitness {name} ")
    examples = re.findall(r"^  \$ dpwitness (.*)$", text, re.MULTILINE)
    assert examples
    for line in examples:
        assert parsed(shlex.split(line)).context.info_name == name.split()[-1]
    codes = text.partition("exit codes:")[2]
    assert {int(code) for code in re.findall(r"^  (\d+) ", codes, re.MULTILINE)} >= {0, 2, 70}
    assert ("violated" in codes) == (name in ("check", "profile", "replay", "compare", "one-run", "sweep"))


def test_the_page_of_commands_has_the_exit_codes():
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    table = page.partition("## Exit codes")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    assert table.splitlines() == ["| code | meaning |", "|---|---|", *rows]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["check", "svt", "--epsilom", "1"], "--epsilon'? See `dpwitness check --help`"),
        (["check", "svt", "--max=3"], "'--max'"),
        (["attack", "subset_sum", "--see", "1"], "'--seed'"),
        (["chekc", "svt"], "'chekc'"),
        (["check", "svt", "--save", "--json"], "'--save': a value is needed before --json"),
        (["curve", "svt"], "see `dpwitness curve --help`"),
    ],
)
def test_a_slip_is_one_line_that_names_it_and_the_help(capsys, line, said):
    told = refusal(capsys, *line)
    assert said in told
    assert "--help`" in told


def test_what_is_printed_is_the_text_of_the_verdict(capsys, monkeypatch):
    found = []
    check = dpw.check
    monkeypatch.setattr(dpw, "check", lambda *given, **named: found.append(check(*given, **named)) or found[-1])
    command = ["check", "laplace_mechanism", "--epsilon", "1", "--runs", "2e4", "--seed", "1"]
    main(command)
    reproduce = "\n  reproduce: dpwitness check laplace_mechanism "
    assert capsys.readouterr().out.startswith(found[0].report(details=False) + reproduce)
    main([*command, "--details"])
    assert capsys.readouterr().out.startswith(f"{found[1]}{reproduce}")
    assert len(repr(found[0])) < 200


def test_data_and_witnesses_from_standard_input(capsys, monkeypatch, tmp_path):
    def piped(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    saved = tmp_path / "w.json"
    piped("count\n3\n4\n")
    command = ["check", "histogram_wrong_scale", "--epsilon", "0.5", "--data", "-", "--column", "count", "--seed", "1"]
    assert main([*command, "--save", str(saved)]) == 1
    piped(saved.read_text())
    assert main(["replay", "-", "--seed", "2"]) == 1
    assert capsys.readouterr().out.count("VIOLATED: ") == 2
    piped("")
    assert refusal(capsys, "replay", "-").startswith("standard input is not JSON: ")


def test_help_imports_nothing_that_takes_time():
    """Neither numpy nor numba; a tenth of a second rather than one."""
    heavy = "[name for name in ('numpy', 'numba') if name in sys.modules]"
    script = f"import sys; from dpwitness.cli import main; main([]); print({heavy})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
