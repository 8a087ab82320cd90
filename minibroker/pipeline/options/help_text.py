"""The help about one option, on the command line and in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.pipeline.options.declaration import option_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.pipeline.options.declaration import PlanField


def help_text(field: PlanField) -> str:
    """Return what an option does, whether its flag is repeated, and its default."""
    option = option_of(field)
    often = "; may be given more than once" if option.kind.is_repeated else ""
    default = option.default
    if not default and field.default and not (field.is_needed or option.kind.is_switch):
        default = option.kind.show(field.default)
    return f"{option.help}{often}" + (f" ({default})" if default else "")


def argument_lines(keywords: Mapping[str, PlanField]) -> list[str]:
    """Return `name: what it does` for each keyword of a function."""
    lines = []
    for name, field in keywords.items():
        option = option_of(field)
        words = "" if option.kind.is_switch else f" {option.metavar or option.kind.metavar}"
        lines.append(f"{name}: {option.help} ({option.flag}{words})")
    return lines
