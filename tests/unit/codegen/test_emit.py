"""Generated classes of toy specs at work: layouts that are merged, tags, refusals."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ERROR_CODES, ErrorCode
from minibroker.kafka.protocol.primitives import Reader, Writer
from protocol_specs.codegen import __main__ as command
from protocol_specs.codegen.__main__ import SPECS
from protocol_specs.codegen.emit import layout_name
from protocol_specs.codegen.emit_module import api_source, stored_source
from protocol_specs.codegen.emit_releases import releases_source
from protocol_specs.codegen.emit_tables import api_keys_source, error_codes_source
from protocol_specs.codegen.ladder import indent, ladder, starts_of
from protocol_specs.codegen.layouts import Digests, differences, digests_of, digests_text, with_new
from protocol_specs.codegen.spec import Range, StoredRecord
from protocol_specs.codegen.text import LINE_LENGTH, banner, sentence, wrap_text
from tests.support.message_bytes import body_of
from tests.unit.codegen.specs import api_of, classes_of, field_data

if TYPE_CHECKING:
    from pathlib import Path


def test_neighbouring_numbers_are_packed_together_per_version(tmp_path: Path) -> None:
    api = api_of(
        tmp_path,
        field_data("a", "int32"),
        field_data("b", "int64", versions="1+", default=-1, ignorable=True),
        field_data("c", "bool"),
    )
    source = api_source(api)
    assert '_IQZ = Struct(">iq?")' in source
    assert '_IZ = Struct(">i?")' in source
    assert "self.a, self.b, self.c = reader.fixed(_IQZ)" in source
    toy = classes_of(api)["ToyRequest"]
    for version, data in ((0, b"\0\0\0\5\1"), (1, b"\0\0\0\5" + bytes(7) + b"\7\1")):
        assert body_of(toy(a=5, b=7, c=True), version) == data
        back = toy.read(Reader(data), version)
        assert (back.a, back.b, back.c) == (5, 7 if version else -1, True)


def test_documentation_is_safe_in_a_docstring(tmp_path: Path) -> None:
    data = {**field_data("a", "int8", versions="1+"), "doc": 'Ends in "quotes"'}
    source = api_source(api_of(tmp_path, data))
    assert '"""v1+. Ends in \'quotes\'."""' in source
    compile(source, "toy.py", "exec")


def test_names_of_layouts() -> None:
    assert layout_name("ihq") == "_IHQ"
    assert layout_name("?HI") == "_ZUHUI"


def test_a_tag_that_comes_later_than_flexible_versions(tmp_path: Path) -> None:
    toy = classes_of(api_of(tmp_path, field_data("a", "int32", versions="3", tag=4)))["ToyRequest"]
    body = body_of(toy(a=1), 3)
    assert body == b"\x01\x04\x04\x00\x00\x00\x01"
    assert toy.read(Reader(body), 3) == toy(a=1)
    assert toy.read(Reader(body), 2) == toy()
    for version in (0, 2):
        with pytest.raises(ValueError, match=f"ToyRequest version {version} cannot carry a"):
            toy(a=1).write(Writer(), version)


def test_an_ignorable_tag_is_dropped_where_it_has_no_place(tmp_path: Path) -> None:
    data = field_data("a", "int32", versions="3", tag=4, ignorable=True)
    toy = classes_of(api_of(tmp_path, data))["ToyRequest"]
    for version, expected in ((0, b""), (2, b"\x00")):
        assert body_of(toy(a=1), version) == expected


def test_a_message_without_fields(tmp_path: Path) -> None:
    toy = classes_of(api_of(tmp_path))["ToyRequest"]
    assert body_of(toy(), 2) == b"\x00"
    assert toy.read(Reader(b"\x00"), 2) == toy()
    assert toy.read(Reader(b""), 1) == toy()


# Whole modules: what stands at the top, and names of structs that two sides use.


def test_the_top_says_what_it_is_and_where_it_comes_from(tmp_path: Path) -> None:
    source = api_source(api_of(tmp_path, field_data("a", "int8")))
    for text in (
        "Toy: key 99, versions 0 to 3.",
        "A toy.",
        "1: Something new.",
        "Generated from protocol_specs/apis/99_toy.json",
        "API_KEY = 99",
        "VERSIONS = (0, 3)",
        "FLEXIBLE_FROM: int | None = 2",
    ):
        assert text in source


def test_only_what_is_used_is_imported(tmp_path: Path) -> None:
    source = api_source(api_of(tmp_path, field_data("a", "string")))
    assert "ZERO_UUID" not in source
    assert "not_carried" not in source
    assert "import Struct" not in source


def part(kind: str) -> dict[str, Any]:
    """A side with a struct called Part."""
    return {"fields": [field_data("parts", "[]Part", fields=[field_data("a", kind)])]}


def test_a_struct_of_both_sides_is_one_class(tmp_path: Path) -> None:
    classes = classes_of(api_of(tmp_path, request=part("int8"), response=part("int8")))
    assert "Part" in classes
    assert "RequestPart" not in classes


def test_structs_of_one_name_but_other_fields_get_the_side_in_front(tmp_path: Path) -> None:
    classes = classes_of(api_of(tmp_path, request=part("int8"), response=part("int16")))
    assert "Part" not in classes
    assert {"RequestPart", "ResponsePart"} <= classes.keys()


def test_a_stored_record_has_no_api_key() -> None:
    source = stored_source(StoredRecord(SPECS / "stored" / "offset_commit.json"))
    assert "API_KEY" not in source
    assert "class OffsetCommitKey(VersionedMessage):" in source
    assert "class OffsetCommitValue(VersionedMessage):" in source


# The table of releases as Python: its text runs and says what the facts say.


TABLE = {
    "releases": ["0.9.0", "1.0", "2.0", "3.0"],
    "apis": [
        {"key": 0, "api": "Produce", "since": {"0.9.0": "0-1", "2.0": "1-3"}},
        {"key": 56, "api": "Gone", "since": {"1.0": "0-0", "3.0": None}},
        {"key": 90, "api": "Never", "since": {}},
    ],
}


def run(table: dict[str, Any]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(releases_source(table), names)
    return names


def test_a_range_holds_until_the_next_one() -> None:
    served = run(TABLE)["served_by"]
    assert served("0.9.0") == {0: (0, 1)}
    assert served("1.0") == {0: (0, 1), 56: (0, 0)}
    assert served("2.0") == {0: (1, 3), 56: (0, 0)}


def test_an_api_that_was_taken_away_is_not_served() -> None:
    assert run(TABLE)["served_by"]("3.0") == {0: (1, 3)}


def test_advertised_from_changes_only_what_is_told() -> None:
    table = dict(TABLE)
    table["apis"] = [
        {
            "key": 0,
            "api": "Produce",
            "since": {"0.9.0": "0-1", "2.0": "2-3"},
            "advertised_from": {"2.0": 0},
        }
    ]
    names = run(table)
    assert names["served_by"]("2.0") == {0: (2, 3)}
    assert names["advertised_by"]("2.0") == {0: (0, 3)}
    assert names["advertised_by"]("1.0") == {0: (0, 1)}


def test_releases_out_of_order_are_refused() -> None:
    table = {
        "releases": ["1.0", "2.0"],
        "apis": [{"key": 0, "api": "Produce", "since": {"2.0": "0-1", "1.0": "0-0"}}],
    }
    with pytest.raises(ValueError, match="Produce: releases are not in order"):
        releases_source(table)


# The two tables: error codes and API keys.


def test_error_codes_as_numbers_with_names() -> None:
    rows = [
        {"code": -1, "name": "UNKNOWN_SERVER_ERROR", "retriable": False, "meaning": "A bug."},
        {"code": 0, "name": "NONE", "retriable": False, "meaning": "Fine."},
        {"code": 7, "name": "LATER", "retriable": True, "meaning": "Not yet."},
    ]
    namespace: dict[str, Any] = {"__name__": "codes"}
    exec(error_codes_source({"errors": rows}), namespace)
    codes = namespace["ErrorCode"]
    assert namespace["ERROR_CODES"] == {"UNKNOWN_SERVER_ERROR": -1, "NONE": 0, "LATER": 7}
    assert all(code.name == name for name, code in namespace["ERROR_CODES"].items())
    assert repr(codes.LATER) == "<ErrorCode.LATER: 7>"
    assert f"{codes.LATER} {codes.LATER:3}" == "7   7"
    assert (codes.LATER.retriable, codes.NONE.retriable) == (True, False)
    assert codes(7).meaning == "Not yet."
    assert codes(8) is codes.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="LATER"):
        codes("LATER")


def test_copies_of_an_error_code_are_the_code_itself() -> None:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode(6) is pickle.loads(pickle.dumps(code)) is deepcopy(code) is code


def test_every_error_code_has_a_meaning() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.INVALID_TOPIC_EXCEPTION.retriable
    assert all(code.meaning.endswith((".", ")")) for code in ERROR_CODES.values())
    assert list(ERROR_CODES.values()) == list(range(-1, len(ERROR_CODES) - 1))


def test_api_keys_as_constants_and_a_table(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "keys"}
    exec(api_keys_source([api_of(tmp_path)]), namespace)
    assert namespace["TOY"] == 99
    api = namespace["APIS"][99]
    facts = (api.key, api.name, api.module, api.min_version, api.max_version, api.flexible_from)
    assert facts == (99, "Toy", "toy", 0, 3, 2)


# Version branches, newest first and only where something differs.


def test_one_code_for_all_versions_needs_no_branch() -> None:
    assert ladder(Range(0, 9), {3, 5}, lambda _: ["x"]) == ["x"]


def test_two_codes_make_if_and_else() -> None:
    lines = ladder(Range(0, 9), {3}, lambda version: ["new" if version >= 3 else "old"])
    assert lines == ["if version >= 3:", "    new", "else:", "    old"]


def test_a_middle_range_makes_elif_and_an_empty_one_pass() -> None:
    lines = ladder(Range(0, 9), {3, 6}, lambda v: [] if 3 <= v < 6 else [f"from {v}"])
    assert lines == [
        "if version >= 6:",
        "    from 6",
        "elif version >= 3:",
        "    pass",
        "else:",
        "    from 0",
    ]


def test_nothing_in_old_or_in_new_versions() -> None:
    assert ladder(Range(0, 9), {3}, lambda v: ["x"] if v >= 3 else []) == [
        "if version >= 3:",
        "    x",
    ]
    assert ladder(Range(0, 9), {3}, lambda v: [] if v >= 3 else ["x"]) == [
        "if version < 3:",
        "    x",
    ]


def test_breaks_outside_the_scope_do_not_count() -> None:
    assert ladder(Range(4, 9), {3, 12}, lambda v: [str(v)]) == ["4"]


def test_edges_of_ranges() -> None:
    assert starts_of(Range(2, 4), None, Range(0, 1)) == {2, 5, 0}


def test_empty_lines_are_not_indented() -> None:
    assert indent(["a", ""]) == ["    a", ""]


# Digests of layouts: equal while nothing that clients see has changed.


A = field_data("a", "int32", default=1)
B = field_data("b", "string", versions="1+")


def digests(directory: Path, *fields: dict[str, Any], **more: Any) -> Digests:
    """Return the digests of a small request with these fields."""
    return digests_of([api_of(directory, *fields, **more).request])


def test_versions_that_are_alike_have_one_digest(tmp_path: Path) -> None:
    digest = digests(tmp_path, A, B)["ToyRequest"]
    assert list(digest) == ["0", "1", "2", "3"]
    assert digest["0"] != digest["1"] != digest["2"] == digest["3"]


def test_documentation_may_change(tmp_path: Path) -> None:
    first_digests = digests(tmp_path, A)
    assert differences(first_digests, digests(tmp_path, {**A, "doc": "Other words."})) == []


@pytest.mark.parametrize(
    "fields",
    [
        (B, A),
        ({**A, "type": "int64"}, B),
        ({**A, "default": 2}, B),
        ({**A, "name": "c"}, B),
        (A, {**B, "nullable": "1+"}),
        (A,),
    ],
)
def test_fields_that_clients_see_may_not(
    tmp_path: Path, fields: tuple[dict[str, Any], ...]
) -> None:
    frozen = digests(tmp_path, A, B)
    assert "ToyRequest version 1" in differences(frozen, digests(tmp_path, *fields))


def test_a_new_version_is_added_and_the_old_ones_stay(tmp_path: Path) -> None:
    frozen = digests(tmp_path, A, versions="0-2")
    current = digests(tmp_path, {**A, "default": 5}, B)
    merged = with_new(frozen, current)["ToyRequest"]
    assert merged["3"] == current["ToyRequest"]["3"]
    assert merged["2"] == frozen["ToyRequest"]["2"]


def test_a_message_that_is_gone_is_a_difference() -> None:
    assert differences({"Gone": {"0": "x"}}, {}) == ["Gone version 0"]


def test_the_file_has_a_message_a_line() -> None:
    assert digests_text({"B": {"0": "y"}, "A": {}}) == '{\n  "A": {},\n  "B": {"0": "y"}\n}\n'


# Banner, wrapped lines, sentences.


def test_a_banner_names_its_origin() -> None:
    lines = banner("Title.", "specs/x.json", "Body.")
    assert lines[2:5] == ['"""Title.', "", "Body."]
    assert (
        "Generated from specs/x.json by `python -m protocol_specs.codegen`; do not edit." in lines
    )


def test_wrapped_lines_fit() -> None:
    lines = wrap_text(", ".join(map(str, range(200))), indent=8)
    assert len(lines) > 1
    assert all(line.startswith(" " * 8) and len(line) <= LINE_LENGTH for line in lines)


def test_a_sentence_is_safe_in_a_docstring() -> None:
    assert sentence('Say "no"') == "Say 'no'."
    assert sentence("Done.") == "Done."
    assert sentence("a\\b") == "a\\\\b."
    assert sentence("") == ""


# The command: writes what is stale, or only says so.


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The generator writes to a directory of the test's own."""
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "generate", lambda: {tmp_path / "sub" / "made.py": "text\n"})
    return tmp_path / "sub" / "made.py"


def __main___run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command's exit code."""
    monkeypatch.setattr("sys.argv", ["codegen", *arguments])
    return command.main()


def test_check_says_what_is_stale_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    assert __main___run(monkeypatch, "--check") == 1
    assert capsys.readouterr().out == "stale sub/made.py\n"
    assert not elsewhere.exists()


def test_without_options_it_writes_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    assert __main___run(monkeypatch) == 0
    assert elsewhere.read_text() == "text\n"
    assert __main___run(monkeypatch) == 0
    assert __main___run(monkeypatch, "--check") == 0
    assert capsys.readouterr().out == "wrote sub/made.py\n"


def test_freeze_adds_to_the_layouts(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path, tmp_path: Path
) -> None:
    (tmp_path / "layouts.json").write_text('{"Old": {"0": "kept"}}')
    monkeypatch.setattr(command, "SPECS", tmp_path)
    monkeypatch.setattr(command, "current_digests", lambda: {"New": {"0": "added"}})
    assert __main___run(monkeypatch, "--freeze") == 0
    assert command.frozen_digests() == {"New": {"0": "added"}, "Old": {"0": "kept"}}
