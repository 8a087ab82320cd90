"""Pages and parts of pages, made from the templates that stand beside the code that fills them.

A template is named by its path inside the package: `pages/base.html`. It reaches other templates
by the same names, and files that are no templates with `source(name)`.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2.environment import TemplateModule

_PACKAGE: Final = Path(__file__).parents[1]


def render(template: str, **values: Any) -> str:
    """Return a whole page. Every value is escaped; markup comes from `macro` and from templates.

    Raises jinja2.UndefinedError for a value that the template needs and does not get.
    """
    return _environment().get_template(template).render(**values)


def macro(template: str, name: str, **values: Any) -> Markup:
    """Return a part that one macro of a template makes. Raises jinja2.UndefinedError."""
    markup: Markup = getattr(_module(template), name)(**values)
    return markup


@cache
def _module(template: str) -> TemplateModule:
    return _environment().get_template(template).module


@cache
def _environment() -> Environment:
    """Return the environment of all templates, made when the first one is used."""
    environment = Environment(
        loader=FileSystemLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["source"] = _source
    environment.filters["digest"] = _digest
    return environment


def _source(name: str) -> Markup:
    """Return a file of the package as it is: a style sheet or a script."""
    return Markup((_PACKAGE / name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    """Return the digest by which a Content-Security-Policy allows an inline style or script."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
