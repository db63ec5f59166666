"""A page as its parts, rendered and written as Markdown and as one HTML file that asks nothing of the net."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from pathlib import Path

# ---- the parts of a page. Text in them is Markdown: bold, code, links, <small> and escapes ------------------------


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """Paragraphs, bullets and plain tables."""

    markdown: str


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    left: int = 1  # columns set flush left


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    caption: str
    svg: str


Part = Heading | Text | Table | Picture


# ---- on disk -------------------------------------------------------------------------------------------------------


def write_page(docs: Path, name: str, parts: list[Part]) -> str:
    """Write docs/name.md, docs/name.html and the pictures into docs/figures. Says what was written."""
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    pictures = [p for p in parts if isinstance(p, Picture)]
    for picture in pictures:
        put(docs / "figures" / f"{picture.name}.svg", picture.svg)
    markdown, page = docs / f"{name}.md", docs / f"{name}.html"
    put(markdown, to_markdown(parts))
    put(page, to_html(parts))
    return f"wrote {markdown}, {page} and {len(pictures)} figures"


def put(path: Path, text: str) -> None:
    """The same bytes on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")


# ---- Markdown ------------------------------------------------------------------------------------------------------


def to_markdown(parts: list[Part]) -> str:
    return "\n\n".join(part_to_markdown(part) for part in parts) + "\n"


def part_to_markdown(part: Part) -> str:
    if isinstance(part, Heading):
        return f"{'#' * part.level} {part.text}"
    if isinstance(part, Text):
        return part.markdown.strip()
    if isinstance(part, Picture):
        return f"![{part.title}](figures/{part.name}.svg)\n\n**{part.title}** {part.caption}"
    rule = ["---" if i < part.left else "---:" for i in range(len(part.header))]
    lines = ["| " + " | ".join(row) + " |" for row in (part.header, rule, *part.rows)]
    notes = [f"- {note}" for note in part.notes]
    return "\n".join([f"**{part.title}**", "", *lines, *([""] if notes else []), *notes])


def plain(text: str) -> str:
    """Text that must not be taken for Markdown, such as the star of a stand-in's name."""
    return re.sub(r"([*|\\`<\[\]])", r"\\\1", text)


# ---- HTML ----------------------------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --soft: #f3f4f6; --line: #d0d4da; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --paper: #15171a; --soft: #22262b; --line: #3b4149; --link: #7ab8ff; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 92rem; margin: 0 auto; padding: 1rem 1.5rem 4rem; }
p, ul, nav { max-width: 52rem; }
a { color: var(--link); }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
code { background: var(--soft); padding: 0 .25em; border-radius: 3px; }
small { opacity: .75; }
.table { overflow: auto; max-height: 88vh; border: 1px solid var(--line); border-radius: 4px; width: fit-content;
  max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; font-size: .84rem; font-variant-numeric: tabular-nums; }
caption, .title { text-align: left; font-weight: 600; margin: 1.6rem 0 .4rem; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { position: sticky; top: 0; background: var(--soft); z-index: 1; }
tbody tr:hover td { background: var(--soft); }
td.left, th.left { text-align: left; }
td.wide { white-space: normal; min-width: 16rem; }
td:first-child, th:first-child { position: sticky; left: 0; }
td:first-child { background: var(--paper); }
th:first-child { z-index: 2; }
.notes { font-size: .84rem; margin: .4rem 0 1.6rem; }
figure { margin: 2rem 0; }
figure svg { background: #fff; max-width: 100%; height: auto; border-radius: 4px; }
figcaption { max-width: 52rem; font-size: .9rem; }
"""


def to_html(parts: list[Part]) -> str:
    """One file that asks nothing of the net."""
    chapters = [p for p in parts if isinstance(p, Heading) and p.level == 2]
    links = "\n".join(f'<li><a href="#{anchor(h.text)}">{inline(h.text)}</a></li>' for h in chapters)
    body = [part_to_html(part) for part in parts]
    nav = f"<nav><ul>\n{links}\n</ul></nav>"
    title = html.escape(next((p.text for p in parts if isinstance(p, Heading)), ""))
    head = f'<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<title>{title}</title>'
    inner = "\n".join([*body[:1], nav, *body[1:]])
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n{inner}\n</body>\n</html>\n"
    )


def part_to_html(part: Part) -> str:
    if isinstance(part, Heading):
        return f'<h{part.level} id="{anchor(part.text)}">{inline(part.text)}</h{part.level}>'
    if isinstance(part, Text):
        return "\n".join(block_to_html(block) for block in re.split(r"\n\s*\n", part.markdown.strip()) if block)
    if isinstance(part, Picture):
        caption = f"<figcaption><b>{inline(part.title)}</b> {inline(part.caption)}</figcaption>"
        return f"<figure>\n{own_ids(part.svg, part.name)}\n{caption}\n</figure>"
    return table_to_html(part)


def table_to_html(table: Table) -> str:
    def cells(tag: str, row: list[str]) -> str:
        def classes(i: int, text: str) -> str:
            names = ["left"] * (i < table.left) + ["wide"] * (i < table.left and len(text) > 30)
            return f' class="{" ".join(names)}"' if names else ""

        return "<tr>" + "".join(f"<{tag}{classes(i, t)}>{inline(t)}</{tag}>" for i, t in enumerate(row)) + "</tr>"

    rows = "\n".join(cells("td", row) for row in table.rows)
    notes = "".join(f"<li>{inline(note)}</li>" for note in table.notes)
    return (
        f'<p class="title">{inline(table.title)}</p>\n<div class="table"><table>\n<thead>{cells("th", table.header)}'
        f"</thead>\n<tbody>\n{rows}\n</tbody></table></div>" + (f'\n<ul class="notes">{notes}</ul>' if notes else "")
    )


def block_to_html(block: str) -> str:
    """A paragraph, bullets, a heading or a table: what remarks.md may hold."""
    lines = block.strip().splitlines()
    if re.match(r"#+ ", lines[0]):
        level = len(lines[0].split()[0])
        rest = f"\n{block_to_html(chr(10).join(lines[1:]))}" if lines[1:] else ""
        return f"<h{level}>{inline(lines[0].lstrip('#').strip())}</h{level}>{rest}"
    if re.match(r"[-*] ", lines[0]):
        items = re.split(r"\n[-*] ", "\n" + "\n".join(lines))[1:]
        return "<ul>" + "".join(f"<li>{inline(' '.join(item.split()))}</li>" for item in items) + "</ul>"
    if lines[0].startswith("|") and len(lines) > 1:
        rows = [[t.strip() for t in re.split(r"(?<!\\)\|", line.strip())[1:-1]] for line in lines]
        return table_to_html(Table("", rows[0], rows[2:], left=len(rows[0])))
    return f"<p>{inline(' '.join(lines))}</p>"


def inline(text: str) -> str:
    """Escapes, code, bold, links and <small>; everything else is text."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(f"<code>{html.escape(match[1])}</code>" if match[1] is not None else html.escape(match[2]))
        return f"\0{len(kept) - 1}\0"

    text = re.sub(r"`([^`]+)`|\\([*|\\`<\[\]_])", keep, text.replace("\0", ""))
    text = html.escape(text, quote=False)
    text = re.sub(r"&lt;(/?small)&gt;", r"<\1>", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(
        r"\[([^\]]+)\]\((https?://[^\s)]+|[#\w./-]+)\)",
        lambda m: f'<a href="{html.escape(m[2])}">{m[1]}</a>',
        text,
    )
    return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], text)


def anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def own_ids(svg: str, name: str) -> str:
    """Ids that no other figure of the page has."""
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
