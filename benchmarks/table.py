"""The results as a table that reads well in a terminal and in a README."""

from collections.abc import Iterable, Sequence

from benchmarks.metrics import METRICS, SUBJECT, Metric
from benchmarks.results import Results

LEGEND = (
    "In brackets: how many times better minibroker is (below 1: worse). Verdict: `aim`, `must` or "
    "`SHORT` of must; `?`: the broker of a bar was not measured."
)


def number(value: float) -> str:
    """Three significant digits, thousands with commas."""
    if value >= 100:
        digits = len(str(int(value))) - 3
        return f"{round(value, -digits):,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def render(results: Results, rows: Iterable[str]) -> str:
    """Return the table with its legend, and what is missing from it by name."""
    row_names = set(rows)
    brokers = [broker for broker in results.brokers if broker not in results.missing]
    lines: list[Sequence[str]] = [("", *brokers, "must", "aim", "verdict")]
    lines += [_line(results, metric, brokers) for metric in METRICS if metric.row in row_names]
    parts = [_aligned(lines), "", LEGEND]
    parts += [f"{broker}: not measured, {reason}." for broker, reason in results.missing.items()]
    for broker in brokers:
        notes = results.notes[broker].items()
        parts += [f"{broker}, {subject}: {text}." for subject, text in notes]
    return "\n".join(parts)


def _line(results: Results, metric: Metric, brokers: Sequence[str]) -> list[str]:
    values = results.values(metric.name)
    cells = [f"{metric.label}, {metric.unit}"]
    cells += [_cell(results, metric, broker, values) for broker in brokers]
    sign = "≥" if metric.is_higher_better else "≤"
    for bars in (metric.must, metric.aim):
        mark = metric.strictest(bars, values)
        cells.append(f"{sign} {number(mark)}" if mark is not None else "")
    return [*cells, metric.verdict(values)]


def _cell(results: Results, metric: Metric, broker: str, values: dict[str, float]) -> str:
    if broker not in values:
        notes = results.notes[broker]
        note = notes.get(metric.name) or notes.get(metric.row, "")
        return "not yet" if note.startswith("not yet") else "-"
    text = number(values[broker])
    if broker == SUBJECT or SUBJECT not in values:
        return text
    ratio = metric.times_better(values[SUBJECT], values[broker])
    return f"{text} ({number(ratio)}x)" if ratio is not None else text


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]

    def row(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "| " + " | ".join([first, *rest]) + " |"

    rule = "|" + "|".join(
        "-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)
    )
    return "\n".join([row(lines[0]), rule + "|", *(row(line) for line in lines[1:])])
