"""The commands of the program, and functions that parse and run command lines."""

from dpwitness.cli import main
from dpwitness.cli.command import arguments_of
from dpwitness.cli.commands import program


def commands(above=None, words=()):
    """All commands, each with the words that call it."""
    above = program() if above is None else above
    for name in above.list_commands(None):
        inner = above.get_command(None, name)
        yield (*words, name), inner
        if hasattr(inner, "commands"):
            yield from commands(inner, (*words, name))


def parsed(line):
    """The arguments of a command line, whose first words are those of a command."""
    found = dict(commands())
    words = tuple(line[:2]) if line[0] == "attack" else (line[0],)
    return arguments_of(found[words].make_context(words[-1], [*line[len(words) :]]))


def run(capsys, *arguments):
    """The exit code, the output and the messages of a command."""
    code = main([*map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def refusal(capsys, *arguments, code=2):
    """The message of a command that refuses its arguments: one line after "dpwitness: error: ", and no output."""
    found, out, err = run(capsys, *arguments)
    (line,) = [line for line in err.splitlines() if "warning: " not in line]
    assert (found, out) == (code, "")
    assert line.startswith("dpwitness: error: ")
    return line.removeprefix("dpwitness: error: ")
