"""Markdown as lines of styled text, and how they are laid out in rows of a width."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, pairwise, repeat, zip_longest

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from textual.content import Content
from textual.style import Style

from specchat.tui.wrapping import TAB, breaks, cells

_HEADINGS = {"h1": "bold underline $text-primary", "h2": "bold $text-primary"}
_INLINE = {"strong": "bold", "em": "italic", "s": "strike", "code_inline": "$text-accent on $surface"}
_LINK = "underline $text-primary"
_CODE = "$text-accent"
_DIM = "$foreground 50%"
_NOTHING = Content()
_LEAST_COLUMNS = 8
"""What is left for text, however deep it is nested."""


@dataclass(frozen=True, slots=True)
class Table:
    head: list[Content]
    rows: list[list[Content]]
    alignments: list[str]
    """"left", "center" or "right" for each column."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text before it is wrapped; or a table, or a rule across."""

    body: Content | Table | None
    """None for a rule."""
    first: Content = _NOTHING
    """Stands before the first row."""
    rest: Content = _NOTHING
    """Stands before the others."""


@dataclass(frozen=True, slots=True)
class Row:
    content: Content
    begins: bool
    """It begins a line of the text; else it goes on with the one before, where that was too long."""
    indent: int
    """Columns that stand before what goes on."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block at the top: paragraph, list, table and so on."""

    lines: list[Line]
    source_line: int
    """Where it starts in the source."""


def parsed(source: str) -> list[Block]:
    """The blocks of a source. HTML in it is text like any other."""
    tree = SyntaxTreeNode(_parser().parse(source))
    return [Block(list(_block(node)), node.map[0] if node.map else 0) for node in tree.children]


def laid_out(lines: Iterable[Line], width: int) -> list[Row]:
    """The rows that lines take at a width."""
    return [row for line in lines for row in _rows(line, width)]


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("gfm-like", {"html": False})


def _block(node: SyntaxTreeNode) -> Iterator[Line]:
    match node.type:
        case "paragraph" | "inline" | "text":
            yield from _text(node, "")
        case "heading":
            yield from _text(node, _HEADINGS.get(node.tag, "bold"))
        case "bullet_list" | "ordered_list":
            yield from _list(node)
        case "blockquote":
            mark = Content.styled("▌ ", _DIM)
            for line in _spaced(node.children):
                yield _behind(line, mark, mark)
        case "code_block" | "fence":
            for text in node.content.removesuffix("\n").split("\n"):
                yield Line(Content.styled(text.expandtabs(TAB), _CODE), Content("  "), Content("  "))
        case "table":
            yield Line(_table(node))
        case "hr":
            yield Line(None)
        case _:
            yield from _spaced(node.children) if node.children else [Line(Content(node.content))]


def _text(node: SyntaxTreeNode, style: str) -> Iterator[Line]:
    for content in Content.assemble(*_inline([node], style)).split("\n", allow_blank=True):
        yield Line(content)


def _list(node: SyntaxTreeNode) -> Iterator[Line]:
    items = node.children
    loose = any(child.type == "paragraph" and not child.hidden for item in items for child in item.children)
    first = int(node.attrs.get("start", 1))
    marks = [f"{first + number}. " for number in range(len(items))] if node.type == "ordered_list" else ["• "]
    width = max(map(len, marks))
    for number, item in enumerate(items):
        mark = Content.styled(marks[number % len(marks)].rjust(width), _DIM)
        lines = _spaced(item.children) if loose else [line for child in item.children for line in _block(child)]
        before = mark
        for line in lines or [Line(Content())]:
            yield _behind(line, before, Content(" " * width))
            before = Content(" " * width)
        if loose and number + 1 < len(items):
            yield Line(Content())


def _spaced(nodes: Sequence[SyntaxTreeNode]) -> list[Line]:
    """Blocks one below the other, with a blank line between them."""
    lines: list[Line] = []
    for node in nodes:
        if lines:
            lines.append(Line(Content()))
        lines += _block(node)
    return lines


def _behind(line: Line, first: Content, rest: Content) -> Line:
    return replace(line, first=first + line.first, rest=rest + line.rest)


def _table(node: SyntaxTreeNode) -> Table:
    rows = [row for part in node.children for row in part.children]
    content = [[Content.assemble(*_inline(cell.children, "")) for cell in row.children] for row in rows]
    aligned = [str(cell.attrs.get("style", "")).removeprefix("text-align:") or "left" for cell in rows[0].children]
    return Table(content[0], content[1:], aligned)


def _inline(nodes: Iterable[SyntaxTreeNode], style: str) -> Iterator[Content]:
    for node in nodes:
        match node.type:
            case "text" | "html_inline":
                yield Content.styled(node.content, style)
            case "softbreak":
                yield Content(" ")
            case "hardbreak":
                yield Content("\n")
            case "image":
                yield Content.styled(f"🖼 {node.content or node.attrs.get('src', '')}", f"{style} italic")
            case "code_inline":
                yield Content.styled(node.content, f"{style} {_INLINE['code_inline']}")
            case "link":
                link = Style.from_meta({"@click": f"link({str(node.attrs.get('href', ''))!r})"})
                yield Content.assemble(*_inline(node.children, f"{style} {_LINK}")).stylize(link)
            case _:
                yield from _inline(node.children, f"{style} {_INLINE.get(node.type, '')}")


# Rows.


def _rows(line: Line, width: int) -> Iterator[Row]:
    room = max(_LEAST_COLUMNS, width - cells(line.rest.plain))
    match line.body:
        case None:
            yield Row(line.first + Content.styled("─" * room, _DIM), True, 0)
        case Table():
            for before, row in zip(chain([line.first], repeat(line.rest)), _table_rows(line.body, room), strict=False):
                yield Row(before + row, True, 0)
        case body:
            ends = breaks(body.plain, room)
            yield Row(line.first + body[: ends[0]], True, 0)
            for start, end in pairwise(ends):
                yield Row(line.rest + body[start:end], False, len(line.rest))


def _table_rows(table: Table, width: int) -> Iterator[Content]:
    widths = _column_widths(table, width)
    between = Content.styled(" │ ", _DIM)
    for number, row in enumerate([table.head, *table.rows]):
        columns = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*columns, fillvalue=Content()):
            padded = (_padded(*one) for one in zip(parts, widths, table.alignments, strict=True))
            content = between.join(padded)
            yield content.stylize("bold") if number == 0 else content
        if number == 0:
            yield Content.styled("─┼─".join("─" * width for width in widths), _DIM)


def _column_widths(table: Table, width: int) -> list[int]:
    """As wide as the cells are, or less where that is too much: narrow columns keep theirs."""
    wanted = [max(1, *(cells(cell.plain) for cell in column)) for column in zip(table.head, *table.rows, strict=True)]
    room, given = width - 3 * (len(wanted) - 1), [0] * len(wanted)
    for left, column in zip(range(len(wanted), 0, -1), sorted(range(len(wanted)), key=wanted.__getitem__), strict=True):
        given[column] = min(wanted[column], max(1, room // left))
        room -= given[column]
    return given


def _wrapped(cell: Content, width: int) -> list[Content]:
    ends = breaks(cell.plain, width)
    return [cell[start:end].rstrip() for start, end in zip([0, *ends], ends, strict=False)]


def _padded(cell: Content, width: int, alignment: str) -> Content:
    room = max(0, width - cells(cell.plain))
    left = {"left": 0, "center": room // 2, "right": room}[alignment]
    return Content.assemble(" " * left, cell, " " * (room - left))
