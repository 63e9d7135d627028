"""The documentation site: ``python docs/build.py`` makes static pages of docs/ in site/.

Pages are Markdown. Those of docs/tutorials are run, and what their code prints, shows or draws is
put below it; each is also written as a notebook. The reference is made from docstrings. Nothing is
loaded from elsewhere. Any link that leads nowhere, and any code that fails, ends the build.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import html
import inspect
import io
import json
import os
import re
import shutil
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

ROOT = Path(__file__).parents[1]
DOCS, HERE, SITE = ROOT / "docs", ROOT / "docs" / "site", ROOT / "site"
FORMATTER = HtmlFormatter(nowrap=True)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Page:
    """A page: where it goes, what it is called and its text in Markdown or HTML."""

    name: str
    title: str
    text: str
    ready: bool = False
    links: list[str] = field(default_factory=list)


def markdown() -> MarkdownIt:
    """Return a parser with tables and coloured code."""
    return MarkdownIt("commonmark", {"html": True, "highlight": coloured}).enable("table")


def coloured(code: str, language: str, _: str) -> str:
    """Return code as HTML with its words marked by kind."""
    try:
        return str(highlight(code, get_lexer_by_name(language or "text"), FORMATTER))
    except ClassNotFound:
        return html.escape(code)


def anchor(title: str) -> str:
    """Return what a heading is linked by, as on the pages where the sources are read."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def title_of(text: str) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    if found is None:
        raise SystemExit("a page has no heading")
    return found[1].replace("`", "")


def rendered(page: Page) -> str:
    """Return a page as HTML, its headings linked and its links to other pages leading there."""
    if page.ready:
        return page.text
    tokens = (parser := markdown()).parse(page.text)
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(tokens[at + 1].content.replace("`", "")))
    text = str(parser.renderer.render(tokens, parser.options, {}))
    return re.sub(r'(href|src)="([^"]+)"', lambda found: _link(page, found), text)


def _link(page: Page, found: re.Match[str]) -> str:
    kind, target = found[1], html.unescape(found[2])
    if re.match(r"[a-z]+:", target):
        return found[0]
    target = re.sub(r"\.md(?=#|$)", ".html", target).removeprefix("docs/")
    target = re.sub(r"\.\./(?=[A-Z]+\.html)", "", target)
    target = re.sub(r"[A-Z]+(?=\.html)", lambda name: name[0].lower(), target)
    page.links.append(target)
    return f'{kind}="{html.escape(target)}"'


def run_page(text: str, name: str) -> tuple[str, list[dict[str, Any]]]:
    """Run the code of a page in an empty folder; return the page with results, and its cells."""
    space: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    parts, end = [], 0
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        os.environ["COMORB_HOME"] = folder
        try:
            for found in _PYTHON.finditer(text):
                prose = text[end : found.start()]
                outputs = run_block(
                    found[1], space, f"{name}, line {text[: found.start()].count(chr(10)) + 2}"
                )
                cells += [_prose(prose), _code(found[1], outputs)]
                parts += [prose, found[0], "\n\n", *map(_shown, outputs)]
                end = found.end()
        finally:
            os.chdir(before)
    return "".join([*parts, text[end:]]), [*cells, _prose(text[end:])]


def run_block(code: str, space: dict[str, Any], where: str) -> list[dict[str, str]]:
    """Run a block of code as a notebook does; return what it printed, and what its end is."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always", UserWarning)
        exec(compile(tree, where, "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), space)
    text = printed.getvalue() + "".join(f"note: {one.message}\n" for one in warned)
    outputs = [{"text/plain": text}] if text else []
    return outputs + ([] if value is None else [_mime(value)])


def _mime(value: Any) -> dict[str, str]:
    """Return what a notebook shows of a value: a picture of axes, its HTML, or its text."""
    figure = getattr(value, "figure", None)
    if figure is not None and hasattr(value, "get_title"):
        picture = io.BytesIO()
        figure.savefig(
            picture, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None}
        )
        titles = (value.get_title(loc) for loc in ("center", "left"))
        said = " ".join(next(filter(None, titles), "").split())
        encoded = base64.b64encode(picture.getvalue()).decode()
        return {"image/png": encoded, "text/plain": said}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_(), "text/plain": repr(value)}
    return {"text/plain": repr(value)}


def _shown(output: dict[str, str]) -> str:
    """Return what code gave, as HTML that Markdown leaves alone: without an empty line."""
    if "image/png" in output:
        source = f"data:image/png;base64,{output['image/png']}"
        said = html.escape(output["text/plain"])
        return f'<p class="output"><img alt="{said}" src="{source}"></p>\n\n'
    if "text/html" in output:
        return f'<div class="output">{" ".join(output["text/html"].split())}</div>\n\n'
    lines = html.escape(output["text/plain"]).rstrip("\n").split("\n")
    return f'<pre class="output">{chr(10).join(line or "&nbsp;" for line in lines)}</pre>\n\n'


def _prose(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip().splitlines(True)}


def _code(code: str, outputs: list[dict[str, str]]) -> dict[str, Any]:
    made = [{"output_type": "display_data", "metadata": {}, "data": one} for one in outputs]
    source = code.rstrip("\n").splitlines(True)
    return {
        "cell_type": "code",
        "metadata": {},
        "execution_count": None,
        "source": source,
        "outputs": made,
    }


def notebook(cells: list[dict[str, Any]]) -> str:
    """Return cells as a notebook file."""
    plain = [one | {"id": f"cell-{at}"} for at, one in enumerate(cells) if one["source"]]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps(
        {"cells": plain, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


def reference() -> str:
    """Return the page of every public name, from its docstring, in Markdown."""
    import comorb

    parts = ["# Reference\n\nEvery name of `comorb`, from its docstring.\n"]
    for name in sorted(comorb.__all__, key=str.lower):
        thing = getattr(comorb, name)
        if inspect.ismodule(thing):
            parts.append(f"## {name}\n\n{inspect.getdoc(thing)}\n")
            continue
        if not callable(thing):
            continue
        parts.append(f"## {name}\n\n{described(name, thing)}")
        for own, method in methods(thing) if inspect.isclass(thing) else ():
            parts.append(f"### {name}.{own}\n\n{described(own, method)}")
    return "\n".join(parts)


def methods(kind: type) -> list[tuple[str, Any]]:
    """Return the public methods of a class, and those that it has of others of comorb."""
    found = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("comorb."):
            found |= {name: method for name, method in vars(one).items() if callable(method)}
    return sorted((n, m) for n, m in found.items() if not n.startswith("_") and inspect.getdoc(m))


def described(name: str, thing: Any) -> str:
    """Return the signature and the docstring of a name, its sections as lists, in Markdown."""
    with contextlib.suppress(TypeError, ValueError):
        name += str(_without_types(inspect.signature(thing)))
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", text, flags=re.MULTILINE)
    text = re.sub(
        r"^(\*?[\w, ]+) : (.+)\n((?:    .*\n?|\n(?=    ))+)", _entry, text, flags=re.MULTILINE
    )
    text = re.sub(
        r"((?:^(?:>>>|\.\.\.) .*\n?(?:(?!>>>|\.\.\.).+\n?)*)+)",
        r"```pycon\n\1\n```\n",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"(?<!`)``(?!`)", "`", text).replace(":func:", "").replace(":class:", "")
    return f"```python\n{name}\n```\n\n{text}\n"


def _without_types(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature with names and defaults alone; the docstring says the types."""
    empty = inspect.Signature.empty
    plain = [one.replace(annotation=empty) for one in signature.parameters.values()]
    return inspect.Signature([one for one in plain if one.name != "self"])


def _entry(found: re.Match[str]) -> str:
    told = " ".join(line.strip() for line in found[3].splitlines())
    return f"- `{found[1]}` ({found[2]}): {told}\n"


def check(pages: dict[str, Page], texts: dict[str, str]) -> list[str]:
    """Return the links that lead nowhere."""
    wrong = []
    for page in pages.values():
        for link in page.links:
            path, _, place = link.partition("#")
            name = os.path.normpath(Path(page.name).parent / path) if path else page.name
            if name in texts:
                if place and f'id="{html.escape(place)}"' not in texts[name]:
                    wrong.append(f"{page.name}: nothing is called #{place} in {name}")
            elif not (SITE / name).exists():
                wrong.append(f"{page.name}: {link} leads nowhere")
    return wrong


def main() -> None:
    """Make the site, and end with 1 where a link leads nowhere."""
    sys.path.insert(0, str(ROOT / "src"))
    plan = json.loads((HERE / "plan.json").read_text("utf-8"))
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir()
    for folder in ("images", "reproduction"):
        shutil.copytree(DOCS / folder, SITE / folder)
    shutil.copy(HERE / "style.css", SITE / "style.css")
    (SITE / "code.css").write_text(
        HtmlFormatter(style="friendly").get_style_defs("code"), encoding="utf-8"
    )
    pages: dict[str, Page] = {}
    for section in plan["sections"]:
        for name in section["pages"]:
            pages[f"{name}.html"] = opened(name)
    template = (HERE / "page.html").read_text("utf-8")
    texts = {name: rendered(page) for name, page in pages.items()}
    for name, page in pages.items():
        up = "../" * name.count("/")
        parts = {
            "title": html.escape(page.title),
            "up": up,
            "nav": nav(plan, pages, name),
            "main": texts[name],
        }
        target = SITE / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(filled(template, parts), encoding="utf-8")
    shutil.copy(SITE / next(iter(pages)), SITE / "index.html")
    if wrong := check(pages, texts):
        raise SystemExit("\n".join(wrong))
    print(f"{len(pages)} pages in {SITE}")


def filled(template: str, parts: dict[str, str]) -> str:
    """Return a template with its marks replaced."""
    return re.sub(r"\[\[(\w+)\]\]", lambda mark: parts[mark[1]], template)


def opened(name: str) -> Page:
    """Return a page of the plan, run or made where it must be."""
    if name == "reference":
        text = reference()
    elif name in ("contributing", "security"):
        text = (ROOT / f"{name.upper()}.md").read_text("utf-8")
    else:
        text = (DOCS / f"{name}.md").read_text("utf-8")
    page = Page(f"{name}.html", title_of(text), text)
    if name.startswith("tutorials/"):
        page.text, cells = run_page(text, name)
        file = SITE / f"{name}.ipynb"
        file.parent.mkdir(exist_ok=True)
        file.write_text(notebook(cells), encoding="utf-8")
        page.text += f"\n\n[This page as a notebook]({Path(name).name}.ipynb)\n"
    return page


def nav(plan: dict[str, Any], pages: dict[str, Page], here: str) -> str:
    """Return the list of all pages, the one that is shown marked."""
    up, parts = "../" * here.count("/"), []
    for section in plan["sections"]:
        lines = []
        for name in section["pages"]:
            page = pages[f"{name}.html"]
            mark = ' aria-current="page"' if page.name == here else ""
            lines.append(f'<li><a href="{up}{page.name}"{mark}>{html.escape(page.title)}</a></li>')
        parts.append(f"<h2>{html.escape(section['title'])}</h2><ul>{''.join(lines)}</ul>")
    return "".join(parts)


if __name__ == "__main__":
    main()
