"""Small pieces of text that every emitter needs: a module's banner, wrapped lines."""

from textwrap import wrap

LINE_LENGTH = 100


def banner(title: str, origin: str, body: str = "") -> list[str]:
    """Docstring and warning at the top of a generated module; `origin` is the spec it came from."""
    lines = ["# fmt: off", "# ruff: noqa: E501", f'"""{title}', ""]
    if body:
        lines += [*body.split("\n"), ""]
    note = f"Generated from {origin} by `python -m minibroker.codegen`; do not edit."
    return [*lines, note, '"""', ""]


def wrapped(text: str, *, indent: int) -> list[str]:
    """`text` broken at blanks into lines of at most `LINE_LENGTH` columns, each indented."""
    margin = " " * indent
    return wrap(text, LINE_LENGTH, initial_indent=margin, subsequent_indent=margin)


def sentence(doc: str) -> str:
    """A spec's text for a docstring: quotes made safe, a full stop at the end."""
    text = doc.replace("\\", "\\\\").replace('"', "'").strip()
    return text if not text or text.endswith((".", "!", "?")) else text + "."
