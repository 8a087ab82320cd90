"""Banner, wrapped lines, sentences."""

from __future__ import annotations

from protocol_specs.codegen.text import LINE_LENGTH, banner, sentence, wrapped


def test_a_banner_names_its_origin() -> None:
    lines = banner("Title.", "specs/x.json", "Body.")
    assert lines[2:5] == ['"""Title.', "", "Body."]
    assert (
        "Generated from specs/x.json by `python -m protocol_specs.codegen`; do not edit." in lines
    )


def test_wrapped_lines_fit() -> None:
    lines = wrapped(", ".join(map(str, range(200))), indent=8)
    assert len(lines) > 1
    assert all(line.startswith(" " * 8) and len(line) <= LINE_LENGTH for line in lines)


def test_a_sentence_is_safe_in_a_docstring() -> None:
    assert sentence('Say "no"') == "Say 'no'."
    assert sentence("Done.") == "Done."
    assert sentence("a\\b") == "a\\\\b."
    assert sentence("") == ""
