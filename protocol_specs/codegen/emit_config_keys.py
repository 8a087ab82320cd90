"""Makes `broker/config/key_rows.py`, the rows of `keys.json` that a start reads, as Python.

Python keeps a module as byte code, and reads that in a quarter of the time that JSON takes. The
sentences stay in `keys.json`: few runs ask for one.
"""

from typing import Any

from protocol_specs.codegen.text import banner


def key_rows_source(scopes: dict[str, Any]) -> str:
    """Return the text of the module. `scopes`: scope → rows, or group → rows."""
    lines = banner(
        "The keys of brokers, topics, groups and client metrics subscriptions, without sentences.",
        "minibroker/broker/config/keys.json",
        "`keys` reads it; its docstring explains a row.",
    )
    lines += [
        "from typing import Any, Final",
        "",
        "ROWS: Final[dict[str, list[dict[str, Any]]]] = {",
    ]
    for scope, rows in scopes.items():
        lines.append(f'    "{scope}": [')
        lines += [f"        {_without_sentence(row)!r}," for row in _flat(rows)]
        lines.append("    ],")
    return "\n".join([*lines, "}", '"""Scope → rows."""', ""])


def _flat(rows: Any) -> list[dict[str, Any]]:
    return [row for group in rows.values() for row in group] if isinstance(rows, dict) else rows


def _without_sentence(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "doc"}
