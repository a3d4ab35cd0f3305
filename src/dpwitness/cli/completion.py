"""The command `completion`: a script for a shell, made from the parser, so that it knows every command and option."""

import argparse
import shlex
from collections.abc import Callable, Iterator
from typing import Final

from dpwitness.cli.console import NOT_REFUTED, show
from dpwitness.cli.parser import Parser, command

#: For each shell: what writes the script, and the line that loads it.
LOADED: Final = {
    "bash": 'eval "$(dpwitness completion bash)"',
    "zsh": 'eval "$(dpwitness completion zsh)"',
    "fish": "dpwitness completion fish | source",
}


def add(commands: argparse._SubParsersAction, whole: Callable[[], Parser]) -> None:  # type: ignore[type-arg]
    """Declare it; `whole` builds the parser of all commands."""
    below = command(
        commands,
        "completion",
        summary="print a script that completes commands and options in a shell",
        run=lambda arguments: run(arguments, whole()),
        examples=tuple(f"completion {shell}" for shell in LOADED),
    )
    lines = "; ".join(f"{shell}: {line}" for shell, line in LOADED.items())
    below.add_argument(
        "shell", choices=tuple(LOADED), help=f"which shell; to load it, put into its start file: {lines}"
    )


def run(arguments: argparse.Namespace, parser: Parser) -> int:
    """Print the script."""
    show(_fish(parser) if arguments.shell == "fish" else _script(parser, *_SCRIPTS[arguments.shell]))
    return NOT_REFUTED


def _levels(parser: Parser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Parser]]:
    """All commands: their words and their parsers."""
    yield words, parser
    for name, inner in parser.commands.items():
        yield from _levels(inner, (*words, name))


def _options(parser: Parser) -> Iterator[tuple[list[str], argparse.Action]]:
    """The long options of a command, and what each is."""
    for action in parser._actions:
        if long := [name for name in action.option_strings if name.startswith("--")]:
            yield long, action


def _choices(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _first_choices(parser: Parser) -> list[str]:
    """The choices of the first argument without a name, where it has some."""
    first = next((action for action in parser._actions if not action.option_strings), None)
    return [] if first is None or parser.commands else _choices(first)


def _cases(parser: Parser) -> tuple[list[str], list[str]]:
    """For bash and zsh: what may follow a command's words, and an option with choices."""
    words, values = [], []
    for names, inner in _levels(parser):
        given = " ".join(names)
        known = [*inner.commands, *_first_choices(inner), *(name for long, _ in _options(inner) for name in long)]
        words.append(f"    {shlex.quote(given)}) offered={shlex.quote(' '.join(known))} ;;")
        for long, action in _options(inner):
            if action.choices:
                options = "|".join(shlex.quote(f"{given} {name}") for name in long)
                values.append(f"    {options}) offered={shlex.quote(' '.join(_choices(action)))} ;;")
    return words, values


#: Where the words of the command are found: those of commands, from the front, as far as they are known.
_FIND: Final = """
  local -a names; names=({names})
  local given="" word at
  for word in {before}; do
    [[ $word == -* ]] && break
    at="${{given:+$given }}$word"
    [[ " ${{names[*]}} " == *" ${{at// /:}} "* ]] || break
    given=$at
  done
  local offered=""
  case "$given $previous" in
{values}
  esac
  if [[ -z $offered && $previous != --* || $current == -* ]]; then
    case "$given" in
{words}
    esac
  fi
"""


#: Of bash and zsh what `_script` takes besides the parser.
_SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
    "bash": (
        'local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
        '"${COMP_WORDS[@]:1:COMP_CWORD-1}"',
        '  COMPREPLY=($(compgen -W "$offered" -- "$current"))',
        "complete -o bashdefault -o default -F _dpwitness dpwitness",
    ),
    "zsh": (
        'local current="${argv_[CURRENT]}" previous="${argv_[CURRENT-1]}"',
        '"${(@)argv_[2,CURRENT-1]}"',
        "  if [[ -n $offered ]]; then compadd -- ${=offered}; fi\n  [[ $current == -* ]] || _files",
        "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u }\ncompdef _dpwitness dpwitness",
        "local -a argv_; argv_=($words)",
    ),
}


def _script(parser: Parser, state: str, before: str, reply: str, last: str, first: str = "") -> str:
    words, values = _cases(parser)
    names = " ".join(shlex.quote(":".join(given)) for given, _ in _levels(parser) if given)
    found = _FIND.format(names=names, before=before, values="\n".join(values), words="\n".join(words))
    start = "\n".join(f"  {line}" for line in (first, state) if line)
    return f"_dpwitness() {{\n{start}{found}{reply}\n}}\n{last}"


def _fish(parser: Parser) -> str:
    lines = ["complete -c dpwitness -e"]
    for names, inner in _levels(parser):
        seen = " and ".join(f"__fish_seen_subcommand_from {name}" for name in names)
        not_yet = f"not __fish_seen_subcommand_from {' '.join(inner.commands)}"
        here = shlex.quote(" and ".join(filter(None, (seen, not_yet))))
        for name, one in inner.commands.items():
            lines.append(f"complete -c dpwitness -n {here} -f -a {name} -d {shlex.quote(one.summary)}")
        where = f" -n {shlex.quote(seen)}" if seen else ""
        lines += [f"complete -c dpwitness{where} -f -a {shlex.quote(choice)}" for choice in _first_choices(inner)]
        for long, action in _options(inner):
            value = f" -x -a {shlex.quote(' '.join(_choices(action)))}" if action.choices else ""
            value = value or ("" if action.nargs == 0 else " -r")
            text = " ".join((action.help or "").replace("%%", "%").split())
            described = f" -d {shlex.quote(text)}" if text else ""
            lines += [f"complete -c dpwitness{where} -l {name[2:]}{value}{described}" for name in long]
    return "\n".join(lines)
