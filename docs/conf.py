"""How Sphinx builds the documentation: `sphinx-build -W docs build/docs`."""

import os
import re
import subprocess
import sys
from pathlib import Path

project = "dpwitness"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
html_theme = "furo"
html_title = "dpwitness"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False
html_copy_source = False
myst_heading_anchors = 3
autodoc_typehints = "none"
numpydoc_show_class_members = False
add_module_names = False
toc_object_entries = False
default_role = "literal"

#: The groups of the reference of public names, in order: a heading, and the part of dpwitness that defines its names.
GROUPS = {
    "Functions": ("api", "sweeps", "targets", "mechanisms"),
    "Neighbours and domains": ("neighbours",),
    "Claims": ("claims",),
    "Results": ("results",),
    "Events": ("events",),
    "Errors and warnings": ("errors",),
}


def commands():
    """The words of every command, in the order of the help."""
    from click import Group

    from dpwitness.cli.commands import program

    def below(words, command):
        yield words
        if isinstance(command, Group):
            for name in command.list_commands(None):
                yield from below((*words, name), command.get_command(None, name))

    return below((), program())


def write_reference(app):
    """Write what pages include: the text of `--help`, the list of the public names, and the measured results."""
    import dpwitness as dpw

    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    parts = []
    for words in commands():
        command = [sys.executable, "-c", "from dpwitness.cli import main; main()", *words, "--help"]
        environment = os.environ | {"COLUMNS": "94", "NO_COLOR": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout, command
        parts.append(f"## `{' '.join(['dpwitness', *words])}`\n\n```text\n{done.stdout}```\n")
    (folder / "commands.txt").write_text("\n".join(parts))
    (folder / "measured.md").write_text((Path(app.srcdir).parent / "benchmarks" / "RESULTS.md").read_text())
    names = [name for name in sorted(dpw.__all__) if name != "testing"]  # a module: reference.md lists its functions
    parts, left = [], {name: getattr(dpw, name) for name in names}
    for heading, rooms in GROUPS.items():
        parts.append(f"## {heading}\n")
        for name in [name for name, thing in left.items() if thing.__module__.split(".")[1] in rooms]:
            kind = "autoclass" if isinstance(left.pop(name), type) else "autofunction"
            parts.append(f"### `{name}`\n\n```{{eval-rst}}\n.. {kind}:: dpwitness.{name}\n```\n")
    assert not left, f"of no group: {left}"
    (folder / "names.txt").write_text("\n".join(parts))


def link_results(app, docname, source):
    """Links to the measured results, which lie outside of docs/, lead to the copy that `write_reference` writes."""
    source[0] = source[0].replace("](../benchmarks/RESULTS.md", "](generated/measured.md")


def mark_attributes(app, what, name, obj, options, lines):
    """Mark lists of attributes such as coef_,intercept_ as literal; bare, docutils takes each for a link."""
    lines[:] = [re.sub(r"(?<![`'\"\w])(\w+_,\w+_)(?![`'\"\w])", r"``\1``", line) for line in lines]


def setup(app):
    """Have the reference written before the pages are read."""
    app.connect("autodoc-process-docstring", mark_attributes)
    app.connect("builder-inited", write_reference)
    app.connect("source-read", link_results)
