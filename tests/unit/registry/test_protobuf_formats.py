"""Protobuf schemas: text and descriptors, references, canonical text, compatibility, bounds."""

from __future__ import annotations

import re
from base64 import b64encode

import pytest

from minibroker.registry.compatibility import incompatibilities
from minibroker.registry.formats import InvalidSchemaError, ParsedSchema, parse
from minibroker.registry.formats.protobuf import ProtobufContent

OTHER = 'syntax = "proto3"; package a.b; message Other { string q = 1; }'
FULL = """// a comment
syntax = 'proto3';
package a.b;
import "google/protobuf/timestamp.proto";
import "other.proto";
import "confluent/meta.proto";
option java_package = "x.y";
message Outer {
  option (confluent.message_meta).doc = "a \\"doc\\"";
  reserved 4, 7 to 9, 100 to max;
  reserved "foo";
  repeated int32 b = 2 [packed=false, deprecated=true]; string a = 1;
  map<string, Inner> m = 3;
  optional bytes c = 5;
  oneof choice { string d = 10; Inner e = 11; }
  google.protobuf.Timestamp t = 12;
  Other o = 13;
  Kind kind = 14 [json_name="K"];
  message Inner { int32 x = 1; }
  enum Color { RED = 0; BLUE = 1 [deprecated=true]; }
}
enum Kind { option allow_alias = true; reserved 5; Y = 1; Z = 0; X = 0; }
message Empty {}
service S { rpc Get (Outer) returns (stream Empty) { option deprecated = true; }
            rpc Two (Empty) returns (Empty); }
""".replace("Y = 1; Z = 0;", "Z = 0; Y = 1;")
CANONICAL = """syntax = "proto3";
package a.b;

import "google/protobuf/timestamp.proto";
import "other.proto";
import "confluent/meta.proto";

option java_package = "x.y";

message Outer {
  reserved 4;
  reserved 7 to 9;
  reserved 100 to max;
  reserved "foo";

  option (confluent.message_meta) = { doc: "a \\"doc\\"" };

  repeated int32 b = 2 [
    packed = false,
    deprecated = true
  ];
  string a = 1;
  map<string, Outer.Inner> m = 3;
  optional bytes c = 5;
  google.protobuf.Timestamp t = 12;
  Other o = 13;
  Kind kind = 14 [json_name = "K"];

  oneof choice {
    string d = 10;
    Outer.Inner e = 11;
  }

  message Inner {
    int32 x = 1;
  }
  enum Color {
    RED = 0;
    BLUE = 1 [deprecated = true];
  }
}
message Empty {}
enum Kind {
  reserved 5;
  option allow_alias = true;
  Z = 0;
  Y = 1;
  X = 0;
}

service S {
  rpc Get (Outer) returns (stream Empty) {
    option deprecated = true;
  };
  rpc Two (Empty) returns (Empty);
}
"""
PROTO_2 = """syntax = "proto2";

message A {
  optional int32 x = 1 [default = 5];
  required string s = 2 [default = "a\\"b\\n"];
  optional group G = 3 {
    optional int32 y = 1;
  }
  optional bytes by = 9 [default = "\\001x"];

  oneof q {
    int32 r = 20;
    group H = 21 {
      optional int32 z = 1;
    }
  }

  extensions 100 to 199;
  extensions 500 to max;

  extend A {
    optional int32 inner = 101;
  }
}

extend A {
  optional string ext = 100;
}
"""


def schema(text: str, *references: tuple[str, str]) -> ParsedSchema:
    return parse("PROTOBUF", text, references)


def message(fields: str, more: str = "") -> str:
    return f'syntax = "proto3"; package p; message A {{ {fields} }} {more}'


def kinds(new: ParsedSchema, old: ParsedSchema) -> list[str]:
    """Return the kinds of the reasons why `new` does not read what `old` wrote."""
    reasons = incompatibilities(new, old)
    return [re.match(r"\{errorType:'(\w+)'", reason)[1] for reason in reasons]  # type: ignore[index]


def test_the_canonical_text_has_the_layout_of_confluent() -> None:
    full_schema = schema(FULL, ("other.proto", OTHER))
    assert full_schema.canonical == CANONICAL
    assert schema(CANONICAL, ("other.proto", OTHER)).canonical == CANONICAL


def test_proto_2_keeps_labels_defaults_groups_and_extensions() -> None:
    assert schema(PROTO_2).canonical == PROTO_2


def test_normalized_text_has_its_parts_in_order() -> None:
    first = schema(message("string b = 2; int32 a = 1; B c = 3;", "message B {}"))
    second = schema(message("int32 a = 1; p.B c = 3; string b = 2;", "message B {}"))
    assert first.canonical != second.canonical
    assert first.normalized == second.normalized
    assert "  .p.B c = 3;\n" in first.normalized
    assert schema(first.normalized).normalized == first.normalized


def test_a_name_that_is_hidden_is_written_in_full() -> None:
    text = message(".p.B x = 1; B y = 2; message B { int32 q = 1; }", "message B {}")
    hidden_schema = schema(text)
    assert ".p.B x = 1;" in hidden_schema.canonical
    assert "A.B y = 2;" in hidden_schema.canonical
    assert schema(hidden_schema.canonical).canonical == hidden_schema.canonical


def test_a_descriptor_in_base64_is_the_same_schema() -> None:
    full_schema = schema(FULL, ("other.proto", OTHER))
    other = schema(OTHER)
    assert isinstance(full_schema.content, ProtobufContent)
    assert isinstance(other.content, ProtobufContent)
    text = b64encode(full_schema.content.file.SerializeToString()).decode()
    other_text = b64encode(other.content.file.SerializeToString()).decode()
    for reference in (OTHER, other_text):
        again = schema(text, ("other.proto", reference))
        assert again.canonical == CANONICAL
        assert not incompatibilities(again, full_schema)


def test_files_of_google_and_confluent_need_no_reference() -> None:
    names = ("google/protobuf/any", "google/type/money", "confluent/type/decimal")
    imports = "".join(f'import "{name}.proto";' for name in names)
    fields = "google.type.Money m = 1; confluent.type.Decimal d = 2;"
    text = message(fields).replace("package p;", f"package p; {imports}")
    assert all(f'import "{name}.proto";' in schema(text).canonical for name in names)


def test_an_edition_stays_an_edition() -> None:
    text = 'edition = "2023";\n\nmessage A {\n  int32 x = 1;\n}\n'
    assert schema(text).canonical == text


COMPATIBLE = [
    ("int32 x = 1;", "int64 x = 1;"),
    ("int32 x = 1;", "bool x = 1;"),
    ("int32 x = 1;", "E x = 1; enum E { Z = 0; }"),
    ("string x = 1;", "bytes x = 1;"),
    ("string x = 1;", "repeated string x = 1;"),
    ("int32 x = 1;", "int32 y = 1;"),
    ("int32 x = 1;", "int32 x = 1; string y = 2;"),
    ("int32 x = 1; string y = 2;", "int32 x = 1;"),
    ("int32 x = 1;", "oneof o { int32 x = 1; string y = 2; }"),
    ("oneof o { int32 x = 1; string y = 2; }", "string z = 3;"),
    ("oneof o { int32 x = 1; string y = 2; }", "int32 x = 1; string y = 2;"),
    ("E x = 1; enum E { Z = 0; Y = 1; }", "E x = 1; enum E { Z = 0; }"),
    ("B x = 1; message B { int32 q = 1; }", "B x = 1; message B { int64 r = 1; }"),
    ("map<string, int32> x = 1;", "map<string, int64> x = 1;"),
]
INCOMPATIBLE = [
    ("int32 x = 1;", "sint32 x = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    ("int32 x = 1;", "string x = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    ("fixed32 x = 1;", "float x = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    ("int32 x = 1;", "B x = 1; message B {}", "FIELD_KIND_CHANGED"),
    ("map<string, int32> x = 1;", "string x = 1;", "FIELD_KIND_CHANGED"),
    ("map<string, int32> x = 1;", "map<string, string> x = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    ("B x = 1; message B {} message C {}", "C x = 1; message B {} message C {}",
     "FIELD_NAMED_TYPE_CHANGED"),
    ("repeated int32 x = 1;", "int32 x = 1;", "FIELD_NUMERIC_LABEL_CHANGED"),
    ("optional int32 x = 1;", "repeated int32 x = 1;", "FIELD_NUMERIC_LABEL_CHANGED"),
    ("message B {}", "", "MESSAGE_REMOVED"),
    ("B x = 1; message B { int32 q = 1; }", "B x = 1; message B { string q = 1; }",
     "FIELD_SCALAR_KIND_CHANGED"),
    ("int32 x = 1; string y = 2;", "oneof o { int32 x = 1; string y = 2; }",
     "MULTIPLE_FIELDS_MOVED_TO_ONEOF"),
    ("int32 x = 1; oneof o { string y = 2; }", "oneof o { int32 x = 1; string y = 2; }",
     "FIELD_MOVED_TO_EXISTING_ONEOF"),
    ("oneof o { int32 x = 1; string y = 2; }", "oneof o { int32 x = 1; }", "ONEOF_FIELD_REMOVED"),
]  # fmt: skip


def together(texts: list[str]) -> ParsedSchema:
    """Return a schema with a message for each text: protoc has to run once."""
    messages = (f"message A{number} {{ {text} }}" for number, text in enumerate(texts))
    return schema('syntax = "proto3"; package p; ' + " ".join(messages))


def test_rules_of_compatible_changes() -> None:
    old, new = (
        together([pair[0] for pair in COMPATIBLE]),
        together([pair[1] for pair in COMPATIBLE]),
    )
    assert incompatibilities(new, old) == []


def test_rules_of_incompatible_changes() -> None:
    old = together([pair[0] for pair in INCOMPATIBLE])
    new = together([pair[1] for pair in INCOMPATIBLE])
    assert kinds(new, old) == [kind for _, _, kind in INCOMPATIBLE]


def test_required_fields_stay_and_are_not_added() -> None:
    text = 'syntax = "proto2"; message A {{ {} }}'
    full, empty = schema(text.format("required string x = 1;")), schema(text.format(""))
    assert kinds(full, empty) == ["REQUIRED_FIELD_ADDED"]
    assert kinds(empty, full) == ["REQUIRED_FIELD_REMOVED"]


def test_a_package_stays() -> None:
    old = schema(message("int32 x = 1;"))
    assert kinds(schema(message("int32 x = 1;").replace("package p", "package q")), old) == [
        "PACKAGE_CHANGED"
    ]


def test_an_imported_message_counts() -> None:
    text = message("a.b.Other x = 1;").replace("package p;", 'package p; import "other.proto";')
    old = schema(text, ("other.proto", OTHER))
    new = schema(text, ("other.proto", OTHER.replace("string q", "int32 q")))
    assert old.canonical == new.canonical
    assert kinds(new, old) == ["FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"]


def test_a_reason_says_where() -> None:
    old, new = schema(message("int32 x = 1;")), schema(message("string x = 1;"))
    assert incompatibilities(new, old) == [
        "{errorType:'FIELD_SCALAR_KIND_CHANGED', description:'the reader has a string or bytes and"
        " the writer a number (path '#/A/1')'}"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("message {", "Expected message name"),
        (message("B x = 1;"), '"B" is not defined'),
        (message("int32 x = 1; int32 y = 1;"), "already been used"),
        ('syntax = "proto3"; import "x.proto";', "not found"),
        ('syntax = "proto3"; import "/etc/passwd";', "not found"),
        ("YWJj", "neither a .proto file nor a file descriptor"),
        (b64encode(b"\x0a\x01a\x1a\x07x.proto").decode(), "x.proto"),
        ('syntax="proto3";' + "message A {" * 10_000 + "}" * 10_000, "nested deeper"),
        ('syntax="proto3"; option (x) = ' + "a <" * 10_000 + ">" * 10_000 + ";", "nested deeper"),
        (message("".join(f"int32 f{n} = {n};" for n in range(1, 20_002))), "more than 20000"),
        ('syntax="proto3"; option java_package = "' + "{" * 10_000, "it is no .proto file"),
    ],
    ids=map(str, range(12)),
)
def test_an_invalid_schema_says_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=re.escape(reason)) as raised:
        schema(text)
    assert "/tmp" not in str(raised.value)


@pytest.mark.parametrize("name", ["../x.proto", "/x.proto", "", "a\0b", "x" * 300])
def test_a_reference_stays_in_its_directory(name: str) -> None:
    with pytest.raises(InvalidSchemaError, match="no path of an import"):
        schema(message(""), (name, OTHER))


def test_files_that_import_each_other_are_invalid() -> None:
    with pytest.raises(InvalidSchemaError, match="import"):
        schema(
            'syntax = "proto3"; import "x.proto";',
            ("x.proto", 'syntax = "proto3"; import "y.proto";'),
            ("y.proto", 'syntax = "proto3"; import "x.proto";'),
        )
