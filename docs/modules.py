"""The map in docs/architecture.md, a line for every module: ``python docs/modules.py``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "src" / "comorb", ROOT / "reproduction" / "comorb_reproduction")
PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- modules -->\n", "<!-- end of modules -->\n"


def sentence(module: Path) -> str:
    """Return the first sentence of a module's docstring, as a cell of a table."""
    text = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    line = text.partition("\n")[0].replace("``", "`").replace("|", r"\|")
    return re.split(r"(?<=\.) (?=[A-Z])", line)[0].rstrip(".")


def table(package: Path) -> str:
    """Return the heading of a package and a line for each of its modules."""
    root = next(one.parent for one in PACKAGES if package.is_relative_to(one))
    name = ".".join(package.relative_to(root).parts)
    rows = [
        f"| `{module.stem}` | {sentence(module)} |\n"
        for module in sorted(package.glob("*.py"))
        if module.stem != "__init__"
    ]
    head = "\n| module | what it is |\n|---|---|\n" if rows else ""
    return f"### {name}\n\n{sentence(package / '__init__.py')}.\n{head}{''.join(rows)}\n"


def page() -> str:
    """Return the page, its map made again and the rest as it is."""
    before, _, rest = PAGE.read_text("utf-8").partition(START)
    after = rest.partition(END)[2]
    packages = [path.parent for one in PACKAGES for path in sorted(one.rglob("__init__.py"))]
    return f"{before}{START}\n{''.join(map(table, packages))}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8", newline="\n")
