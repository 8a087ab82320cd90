"""A page of HTML: its style, its tables and figures, and its file.

The page loads nothing. The file is looked at before the job and written after it.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence

_STYLE: Final = """
:root{--ink:#1c2430;--soft:#5a6675;--line:#dde3ea;--back:#fff;--card:#f6f8fa;--blue:#2f6fb5;
--mark:#c2540a;--markback:#fdf1e7}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3afbd;--line:#37414d;--back:#14181d;
--card:#1c2229;--blue:#6ea8e5;--mark:#f0944d;--markback:#3a2616}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:20px 16px 48px;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:24px;margin:0}h2{font-size:20px;margin:40px 0 4px;overflow-wrap:anywhere}
h3{font-size:15px;margin:0 0 8px}p{margin:4px 0}
.soft{color:var(--soft)}
.facts{display:flex;flex-wrap:wrap;gap:8px 28px;margin:12px 0 16px;padding:0}
.facts div{min-width:90px}.facts dt{color:var(--soft);font-size:13px}
.facts dd{margin:0;font-size:19px;font-variant-numeric:tabular-nums}
ul.said{list-style:none;margin:0 0 20px;padding:0;max-width:820px}
ul.said li{padding:6px 10px;border-left:3px solid var(--line);margin:0 0 4px;overflow-wrap:anywhere}
ul.said li.warn{border-color:var(--mark);background:var(--markback)}
.grid2{display:grid;gap:16px;grid-template-columns:minmax(0,1fr)}
@media(min-width:860px){.grid2{grid-template-columns:repeat(2,minmax(0,1fr))}}
figure{margin:0;padding:14px 14px 8px;background:var(--card);border:1px solid var(--line);
border-radius:6px}
figcaption{font-weight:600;margin-bottom:4px}
svg{display:block;overflow:visible}svg rect{fill:var(--blue)}svg rect.mark{fill:var(--mark)}
svg rect.track{fill:var(--line)}
svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}
svg .fair{stroke:var(--ink);stroke-dasharray:5 4}
svg text{font-size:12px;fill:var(--soft)}svg .name,svg .amount{font-size:13px;fill:var(--ink)}
svg.columns{width:calc(100% - 44px);margin-left:44px}
.wide{overflow-x:auto;margin-top:16px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px;width:100%}
caption{text-align:left;font-weight:600;padding:6px 0}
th,td{text-align:right;padding:4px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:500}th:first-child,td:first-child,
.words{text-align:left}th:first-child,td:first-child{padding-left:0}
@media print{figure{break-inside:avoid}}
"""


def check(path: str | None) -> None:
    """Raise PipelineError if there is no directory for the page; None: no page is wanted."""
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise PipelineError(f"{path} cannot be written: its directory is not there")


def write(path: str, page: str) -> None:
    """Write the page. Raises PipelineError if it cannot be written."""
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{Path(path)} cannot be written: {error.strerror}") from error


def head_of(title: str) -> str:
    """Return the begin of a page, into its header and behind its title."""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><header>",
            f"<h1>{escape(title)}</h1>",
        ]
    )


def figure(caption: str, drawing: str) -> str:
    """Return a drawing with its caption."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawing}</figure>"


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, words: Sequence[str] = ()
) -> str:
    """Return a table with its caption, and nothing for no rows.

    Args:
        caption: above the table.
        head: titles of the columns.
        rows: cells, as many as titles.
        words: titles of columns that hold text and not numbers, beside the first one.
    """
    if not rows:
        return ""
    kinds = [' class="words"' if title in words else "" for title in head]
    titles = "".join(
        f'<th scope="col"{kind}>{escape(title)}</th>'
        for kind, title in zip(kinds, head, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )
