"""How Sphinx builds the documentation: `sphinx-build -W docs build/docs`."""

import os
import re
import subprocess
import sys
from pathlib import Path

project = "dpwitness"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
html_theme = "furo"
exclude_patterns = ["generated/*"]
myst_heading_anchors = 3
autodoc_typehints = "none"
numpydoc_show_class_members = False
add_module_names = False

COMMANDS = ("list", "check", "bound", "curve", "profile", "replay", "attack")


def write_reference(app):
    """Write the text of `--help` and the list of the public names, which the reference pages include."""
    import dpwitness as dpw

    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    parts = []
    for words in ((), *((name,) for name in COMMANDS)):
        command = [sys.executable, "-c", "from dpwitness.cli import main; main()", *words, "--help"]
        environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout, command
        parts.append(f"## `{' '.join(['dpwitness', *words])}`\n\n```text\n{done.stdout}```\n")
    (folder / "commands.txt").write_text("\n".join(parts))
    parts = []
    for name in sorted(dpw.__all__):
        kind = "autoclass" if isinstance(getattr(dpw, name), type) else "autofunction"
        parts.append(f"## `{name}`\n\n```{{eval-rst}}\n.. {kind}:: dpwitness.{name}\n```\n")
    (folder / "names.txt").write_text("\n".join(parts))


def mark_attributes(app, what, name, obj, options, lines):
    """Mark lists of attributes such as coef_,intercept_ as literal; bare, docutils takes each for a link."""
    lines[:] = [re.sub(r"(?<![`'\"\w])(\w+_,\w+_)(?![`'\"\w])", r"``\1``", line) for line in lines]


def setup(app):
    """Have the reference written before the pages are read."""
    app.connect("autodoc-process-docstring", mark_attributes)
    app.connect("builder-inited", write_reference)
