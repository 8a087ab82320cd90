"""Small texts that every emitter needs: the head of a module, wrapped lines."""

from textwrap import wrap

LINE_LENGTH = 100


def banner(title: str, origin: str, body: str = "", *, has_long_lines: bool = True) -> list[str]:
    """Return docstring and warning for the top of a generated module; `origin` is its spec."""
    lines = ["# fmt: off", *(["# ruff: noqa: E501"] if has_long_lines else [])]
    lines += [f'"""{title}', ""]
    if body:
        lines += [*body.split("\n"), ""]
    note = f"Generated from {origin} by `python -m protocol_specs.codegen`; do not edit."
    return [*lines, note, '"""', ""]


def wrap_text(text: str, *, indent: int) -> list[str]:
    """Return `text` broken at blanks into lines of at most `LINE_LENGTH` columns, each indented."""
    margin = " " * indent
    return wrap(text, LINE_LENGTH, initial_indent=margin, subsequent_indent=margin)


def sentence(doc: str) -> str:
    """Return a spec's text for a docstring: quotes escaped, a full stop at the end."""
    text = doc.replace("\\", "\\\\").replace('"', "'").strip()
    return text if not text or text.endswith((".", "!", "?")) else text + "."
