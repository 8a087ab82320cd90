"""The schema registry's REST API: what each call answers, and what it leaves in `_schemas`."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from minibroker.testing import Broker
from tests.support.registry_calls import V1, RegistryAnswer, ask, posted, record, register

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(registry=True) as broker:
        yield broker


@pytest.fixture
def url(broker: Broker) -> str:
    """An empty registry."""
    broker.reset()
    return broker.registry_url


def codes(*answers: RegistryAnswer) -> list[int]:
    return [answer.code for answer in answers]


def test_the_path_of_all_methods_is_none_of_the_registry(url: str) -> None:
    for method in ("OPTIONS", "GET"):
        assert ask(url, method, "*").code == 404


def test_schema_is_registered_once_over_subjects(url: str) -> None:
    first = register(url, "orders-value", record("a"))
    assert register(url, "orders-value", json.dumps(record("a"), indent=4)) == first
    assert register(url, "bills-value", record("a")) == first
    assert register(url, "bills-value", record("a", "b?")) == first + 1
    assert ask(url, "GET", "/subjects").body == ["bills-value", "orders-value"]
    assert ask(url, "GET", "/subjects/bills-value/versions").body == [1, 2]
    assert ask(url, "GET", f"/schemas/ids/{first}/subjects").body == ["bills-value", "orders-value"]
    assert ask(url, "GET", f"/schemas/ids/{first}/versions").body == [
        {"subject": "bills-value", "version": 1},
        {"subject": "orders-value", "version": 1},
    ]


def test_version_is_found_by_number_latest_and_minus_one(url: str) -> None:
    register(url, "a", '"int"')
    schema_id = register(url, "a", '"long"')
    latest = {"subject": "a", "version": 2, "id": schema_id, "schema": '"long"'}
    for version in ("2", "latest", "-1"):
        assert ask(url, "GET", f"/subjects/a/versions/{version}").body == latest
    assert ask(url, "GET", "/subjects/a/versions/1/schema").body == "int"
    assert ask(url, "GET", f"/schemas/ids/{schema_id}").body == {"schema": '"long"'}
    assert ask(url, "GET", f"/schemas/ids/{schema_id}/schema").body == "long"
    assert ask(url, "GET", "/schemas/ids/1?fetchMaxId=true").body["maxId"] == schema_id
    assert ask(url, "POST", "/subjects/a", posted('"long"')).body == latest


def test_wrong_names_numbers_and_bodies_have_confluents_codes(url: str) -> None:
    register(url, "a", '"int"')
    assert codes(
        ask(url, "GET", "/subjects/none/versions"),
        ask(url, "GET", "/subjects/none/versions/1"),
        ask(url, "GET", "/subjects/a/versions/2"),
        ask(url, "GET", "/schemas/ids/99"),
        ask(url, "POST", "/subjects/none", posted('"int"')),
        ask(url, "POST", "/subjects/a", posted('"long"')),
        ask(url, "GET", "/config/a"),
        ask(url, "GET", "/mode/a"),
        ask(url, "DELETE", "/subjects/none"),
    ) == [40401, 40401, 40402, 40403, 40401, 40403, 40408, 40409, 40401]
    assert (
        codes(
            ask(url, "GET", "/subjects/a/versions/0"),
            ask(url, "GET", "/subjects/a/versions/x"),
            ask(url, "GET", "/subjects/a/versions/2147483648"),
        )
        == [42202] * 3
    )
    assert codes(
        ask(url, "POST", "/subjects/a/versions", posted("no schema")),
        ask(url, "POST", "/subjects/a/versions", posted('"int"', "XML")),
        ask(url, "POST", "/subjects/a/versions", {}),
        ask(url, "PUT", "/config", {"compatibility": "SOME"}),
        ask(url, "PUT", "/config", {}),
        ask(url, "PUT", "/mode", {"mode": "SOME"}),
        ask(url, "PUT", "/mode", {}),
        ask(url, "POST", "/subjects/__GLOBAL/versions", posted('"int"')),
        ask(url, "POST", "/subjects/a/versions", {"schema": 1}),
        ask(url, "POST", "/subjects/a/versions", b"{"),
        ask(url, "GET", "/nothing"),
        ask(url, "GET", "/schemas/ids/x"),
        ask(url, "PATCH", "/config", {}),
    ) == [42201, 42201, 42201, 42203, 42203, 42204, 42204, 42208, 422, 400, 404, 404, 405]


def test_body_that_is_no_json_is_refused_by_its_type(url: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask(url, "POST", "/subjects/a/versions", b"{}", headers=form).code == 415
    plain = {"Content-Type": "application/json; charset=utf-8"}
    assert ask(url, "POST", "/subjects/a/versions", posted('"int"'), headers=plain).status == 200


def test_answer_has_the_type_that_the_client_takes(url: str) -> None:
    for accept, content_type in (
        (V1, V1),
        (f"{V1}; q=1, application/json; q=0.5", V1),
        ("application/json", "application/json"),
        ("*/*", V1),
        ("text/html", V1),
    ):
        answer = ask(url, "GET", "/subjects", headers={"Accept": accept})
        assert answer.headers["content-type"] == content_type, accept


def test_level_decides_which_versions_a_schema_has_to_fit(url: str) -> None:
    register(url, "s", record("a"))
    answer = ask(url, "POST", "/subjects/s/versions", posted(record("a", "b")))
    assert (answer.status, answer.code) == (409, 409)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in answer.body["message"]
    register(url, "s", record("a", "b?"))
    register(url, "s", record("b?"))
    check = "/compatibility/subjects/s/versions"
    new = posted(record("a", "b?"))
    assert ask(url, "POST", f"{check}/latest", new).body == {"is_compatible": False}
    for level, is_compatible in (
        ("NONE", True),
        ("BACKWARD", False),
        ("FORWARD", True),
        ("FORWARD_TRANSITIVE", True),
        ("FULL", False),
        ("FULL_TRANSITIVE", False),
        ("BACKWARD_TRANSITIVE", False),
    ):
        answer = ask(url, "PUT", "/config/s", {"compatibility": level})
        assert answer.body == {"compatibility": level}
        assert ask(url, "POST", check, new).body == {"is_compatible": is_compatible}, level
    verbose = ask(url, "POST", f"{check}/1?verbose=true", posted('"string"')).body
    assert verbose["is_compatible"] is False
    assert "TYPE_MISMATCH" in verbose["messages"][0]
    assert ask(url, "POST", f"{check}/9", new).code == 40402
    assert ask(url, "POST", "/compatibility/subjects/new/versions", new).body["is_compatible"]


def test_configuration_of_a_subject_goes_back_to_that_of_all(url: str) -> None:
    assert ask(url, "GET", "/config").body == {"compatibilityLevel": "BACKWARD"}
    assert ask(url, "PUT", "/config", {"compatibility": "full"}).body == {"compatibility": "FULL"}
    assert ask(url, "GET", "/config/a").code == 40408
    own = ask(url, "GET", "/config/a?defaultToGlobal=true").body
    assert own == {"compatibilityLevel": "FULL"}
    ask(url, "PUT", "/config/a", {"compatibility": "NONE"})
    assert ask(url, "PUT", "/config/a", {"normalize": True}).body == {
        "compatibility": "NONE",
        "normalize": True,
    }
    assert ask(url, "DELETE", "/config/a").body["compatibilityLevel"] == "NONE"
    assert ask(url, "DELETE", "/config/a").code == 40401
    assert ask(url, "DELETE", "/config").body == {"compatibilityLevel": "FULL"}
    assert ask(url, "GET", "/config").body == {"compatibilityLevel": "BACKWARD"}


def test_alias_of_a_subject_is_read_as_the_subject_behind_it(url: str) -> None:
    schema_id = register(url, "real", '"int"')
    ask(url, "PUT", "/config/other", {"alias": "real"})
    answer = ask(url, "GET", "/subjects/other/versions/latest").body
    assert (answer["subject"], answer["id"]) == ("real", schema_id)


def test_subject_is_deleted_softly_and_then_for_good(url: str) -> None:
    schema_id = register(url, "a", '"int"')
    register(url, "a", '"long"')
    assert ask(url, "DELETE", "/subjects/a?permanent=true").code == 40405
    assert ask(url, "DELETE", "/subjects/a").body == [1, 2]
    assert ask(url, "DELETE", "/subjects/a").code == 40404
    assert ask(url, "GET", "/subjects").body == []
    assert ask(url, "GET", "/subjects?deleted=true").body == ["a"]
    assert ask(url, "GET", "/subjects?deletedOnly=true").body == ["a"]
    assert ask(url, "GET", "/subjects/a/versions").code == 40401
    assert ask(url, "GET", "/subjects/a/versions?deleted=true").body == [1, 2]
    assert ask(url, "GET", f"/schemas/ids/{schema_id}").body == {"schema": '"int"'}
    assert ask(url, "GET", f"/schemas/ids/{schema_id}/subjects").body == []
    assert register(url, "a", '"int"') == schema_id
    assert ask(url, "GET", "/subjects/a/versions").body == [3]
    ask(url, "DELETE", "/subjects/a")
    assert ask(url, "DELETE", "/subjects/a?permanent=true").body == [1, 2, 3]
    assert ask(url, "DELETE", "/subjects/a?permanent=true").code == 40401
    assert ask(url, "GET", "/subjects?deleted=true").body == []
    assert ask(url, "GET", f"/schemas/ids/{schema_id}").code == 40403


def test_version_is_deleted_softly_and_then_for_good(url: str) -> None:
    register(url, "a", '"int"')
    register(url, "a", '"long"')
    assert ask(url, "DELETE", "/subjects/a/versions/1?permanent=true").code == 40407
    assert ask(url, "DELETE", "/subjects/a/versions/1").body == 1
    assert ask(url, "DELETE", "/subjects/a/versions/1").code == 40406
    assert ask(url, "GET", "/subjects/a/versions/1").code == 40402
    assert ask(url, "GET", "/subjects/a/versions/1?deleted=true").body["schema"] == '"int"'
    assert ask(url, "GET", "/subjects/a/versions?deletedOnly=true").body == [1]
    assert ask(url, "DELETE", "/subjects/a/versions/1?permanent=true").body == 1
    assert ask(url, "DELETE", "/subjects/a/versions/9").code == 40402
    assert ask(url, "DELETE", "/subjects/a/versions/latest").body == 2
    assert ask(url, "DELETE", "/subjects/a/versions/2").code == 40406  # the only one that it had
    assert ask(url, "DELETE", "/subjects/a/versions/latest").code == 40401


def test_schema_that_others_refer_to_stays(url: str) -> None:
    register(url, "a", record("x", name="A"))
    user = '{"type":"record","name":"B","fields":[{"name":"a","type":"A"}]}'
    user_id = register(url, "b", user, references=(("A", "a", 1),))
    assert ask(url, "GET", "/subjects/a/versions/1/referencedby").body == [user_id]
    assert ask(url, "GET", "/subjects/b/versions/1").body["references"] == [
        {"name": "A", "subject": "a", "version": 1}
    ]
    assert ask(url, "DELETE", "/subjects/a").code == 42206
    assert ask(url, "DELETE", "/subjects/a/versions/1").code == 42206
    missing = posted(user, references=(("A", "a", 7),))
    assert ask(url, "POST", "/subjects/c/versions", missing).code == 42201
    assert ask(url, "DELETE", "/subjects/b").status == 200
    assert ask(url, "DELETE", "/subjects/a").status == 200


def test_reference_to_the_latest_version_gets_its_number(url: str) -> None:
    register(url, "a", record("x", name="A"))
    user = '{"type":"record","name":"B","fields":[{"name":"a","type":"A"}]}'
    register(url, "b", user, references=(("A", "a", -1),))
    references = ask(url, "GET", "/subjects/b/versions/1").body["references"]
    assert references[0]["version"] == 1


def test_mode_decides_which_changes_are_permitted(url: str) -> None:
    register(url, "a", '"int"')
    assert ask(url, "GET", "/mode").body == {"mode": "READWRITE"}
    assert ask(url, "PUT", "/mode/a", {"mode": "READONLY"}).body == {"mode": "READONLY"}
    assert (
        codes(
            ask(url, "POST", "/subjects/a/versions", posted('"long"')),
            ask(url, "DELETE", "/subjects/a"),
            ask(url, "PUT", "/config/a", {"compatibility": "NONE"}),
        )
        == [42205] * 3
    )
    register(url, "b", '"int"')
    assert ask(url, "DELETE", "/mode/a").body == {"mode": "READONLY"}
    assert ask(url, "DELETE", "/mode/a").code == 40401
    assert ask(url, "PUT", "/mode", {"mode": "IMPORT"}).code == 42205
    assert ask(url, "PUT", "/mode?force=true", {"mode": "IMPORT"}).status == 200
    ask(url, "PUT", "/mode/b", {"mode": "READWRITE"})
    ask(url, "PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert ask(url, "POST", "/subjects/b/versions", posted('"long"')).code == 42205


def test_import_mode_takes_ids_and_versions_as_they_are(url: str) -> None:
    assert ask(url, "POST", "/subjects/a/versions", posted('"int"', id=42)).code == 42205
    assert ask(url, "PUT", "/mode/a", {"mode": "IMPORT"}).status == 200
    assert ask(url, "POST", "/subjects/a/versions", posted('"int"')).code == 42205
    assert register(url, "a", '"int"', id=42, version=7) == 42
    assert ask(url, "GET", "/subjects/a/versions").body == [7]
    wrong = posted('"string"', id=42, version=8)
    assert ask(url, "POST", "/subjects/a/versions", wrong).code == 42205
    ask(url, "DELETE", "/mode/a")
    assert register(url, "b", '"long"') == 43


def test_context_is_a_registry_of_its_own(url: str) -> None:
    assert register(url, "a", '"int"') == 1
    assert register(url, ":.c:a", '"string"') == 1
    assert register(f"{url}/contexts/.c", "b", '"long"') == 2
    assert ask(url, "GET", "/contexts").body == [".", ".c"]
    assert ask(url, "GET", "/subjects").body == [":.c:a", ":.c:b", "a"]
    assert ask(url, "GET", "/subjects?subjectPrefix=").body == ["a"]
    assert ask(url, "GET", "/subjects?subjectPrefix=:.c:").body == [":.c:a", ":.c:b"]
    assert ask(url, "GET", "/subjects?subjectPrefix=:*:a").body == [":.c:a", "a"]
    assert ask(f"{url}/contexts/:.c:", "GET", "/subjects").body == [":.c:a", ":.c:b"]
    assert ask(url, "GET", "/schemas/ids/1").body["schema"] == '"int"'
    assert ask(url, "GET", "/schemas/ids/1?subject=:.c:a").body["schema"] == '"string"'
    assert ask(url, "GET", "/schemas/ids/2").code == 40403
    assert ask(url, "GET", "/schemas/ids/2?subject=b").body["schema"] == '"long"'
    ask(url, "PUT", "/config/:.c:", {"compatibility": "NONE"})
    assert register(url, ":.c:a", '"bytes"') == 3
    assert ask(url, "POST", "/subjects/a/versions", posted('"bytes"')).code == 409


def test_lists_are_paged(url: str) -> None:
    for name in "abcde":
        register(url, name, '"int"')
    register(url, "a", '"long"')
    assert ask(url, "GET", "/subjects?offset=1&limit=2").body == ["b", "c"]
    assert ask(url, "GET", "/subjects?limit=-1").body == list("abcde")
    assert ask(url, "GET", "/subjects/a/versions?offset=1").body == [2]
    schemas = ask(url, "GET", "/schemas?latestOnly=true&limit=2").body
    assert [(each["subject"], each["version"]) for each in schemas] == [("a", 2), ("b", 1)]
    assert len(ask(url, "GET", "/schemas").body) == 6


def test_subject_may_have_signs_of_a_url(url: str) -> None:
    name = "a/b c?%ü"
    schema_id = register(url, name, '"int"')
    answer = ask(url, "GET", f"/subjects/{quote(name, safe='')}/versions/1").body
    assert (answer["subject"], answer["id"]) == (name, schema_id)


def test_normalized_schemas_are_one(url: str) -> None:
    # The order of attributes counts, unless the schema is normalized.
    first = '{"type":"record","name":"R","fields":[]}'
    second = '{"name":"R","type":"record","fields":[]}'
    schema_id = register(url, "a", first)
    path = "/subjects/a/versions?normalize=true"
    assert ask(url, "POST", path, posted(second)).body == {"id": schema_id}


def test_metadata_and_rules_are_a_part_of_the_schema(url: str) -> None:
    metadata = {"properties": {"owner": "us"}}
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE"}]}
    first = register(url, "a", '"int"')
    second = register(url, "a", '"int"', metadata=metadata, ruleSet=rules)
    assert second != first
    answer = ask(url, "GET", "/subjects/a/versions/2").body
    assert (answer["metadata"], answer["ruleSet"]) == (metadata, rules)
    version = ask(url, "GET", "/subjects/a/metadata?key=owner&value=us").body
    assert version["version"] == 2


def test_registry_says_what_it_is(url: str) -> None:
    assert ask(url, "GET", "/").body == {}
    assert "AVRO" in ask(url, "GET", "/schemas/types").body
    identity = ask(url, "GET", "/v1/metadata/id").body
    assert identity["scope"]["clusters"]["kafka-cluster"]
    assert ask(url, "GET", "/v1/metadata/version").body["version"]
    assert ask(url, "HEAD", "/subjects").status == 200


def test_page_of_a_browser_is_refused(url: str) -> None:
    assert ask(url, "GET", "/subjects", headers={"Origin": "http://evil"}).code == 403
    assert ask(url, "GET", "/subjects", headers={"Host": "evil.example"}).code == 403


def test_topic_has_records_that_confluents_registry_reads(broker: Broker, url: str) -> None:
    register(url, "a", record("x"))
    ask(url, "PUT", "/config/a", {"compatibility": "NONE"})
    ask(url, "PUT", "/mode", {"mode": "READWRITE"})
    ask(url, "DELETE", "/subjects/a")
    ask(url, "DELETE", "/subjects/a?permanent=true")
    lines = [f"{(entry.key or b'').decode()} {entry.text}" for entry in broker.records("_schemas")]
    schema = json.dumps(json.dumps(record("x"), separators=(",", ":")))
    assert lines == [
        '{"keytype":"SCHEMA","subject":"a","version":1,"magic":1} '
        f'{{"subject":"a","version":1,"id":1,"schema":{schema},"deleted":false}}',
        '{"keytype":"CONFIG","subject":"a","magic":0} {"compatibilityLevel":"NONE"}',
        '{"keytype":"MODE","subject":null,"magic":0} {"mode":"READWRITE"}',
        '{"keytype":"DELETE_SUBJECT","subject":"a","magic":0} {"subject":"a","version":1}',
        '{"keytype":"CONFIG","subject":"a","magic":0} None',
        '{"keytype":"NOOP","context":".","magic":0} {"id":1}',
        '{"keytype":"SCHEMA","subject":"a","version":1,"magic":1} None',
    ]


def test_registry_reads_records_of_another_one(broker: Broker, url: str) -> None:
    register(url, "a", '"int"')
    broker.produce("_schemas", b"damaged", key=b"{")
    broker.produce(
        "_schemas",
        b'{"subject":"b","version":4,"id":9,"guid":"g","schema":"\\"long\\"","deleted":false}',
        key=b'{"keytype":"SCHEMA","subject":"b","version":4,"magic":1}',
    )
    assert ask(url, "GET", "/subjects/b/versions/4").body["id"] == 9
    assert register(url, "b", '"double"') == 10
    assert ask(url, "GET", "/subjects/b/versions").body == [4, 5]


def test_topic_that_would_lose_schemas_takes_none(broker: Broker, url: str) -> None:
    broker.create_topic("_schemas", 1, {"cleanup.policy": "delete"})
    answer = ask(url, "POST", "/subjects/a/versions", posted('"int"'))
    assert (answer.status, answer.code) == (500, 50001)
    assert "compact" in answer.body["message"]


def test_broker_without_a_registry_has_no_url() -> None:
    with Broker() as broker, pytest.raises(RuntimeError, match="registry=True"):
        broker.registry_url  # noqa: B018  it raises
