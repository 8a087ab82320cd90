"""`tests/unit/` mirrors `minibroker/` and `benchmarks/`: tests are found without searching."""

from __future__ import annotations

from pathlib import Path

from tests.compat.scenarios import load_all
from tests.meta.sources import PACKAGE, PRODUCT, ROOT, assert_none, is_generated, name_of

UNIT = ROOT / "tests" / "unit"

# Modules whose tests stand elsewhere, and where: each is shown better there than alone. A handler
# with scenarios in tests/compat is compared with Apache Kafka there and needs no entry.
TESTED_ELSEWHERE = {
    "minibroker/testing/group_views.py": "test_broker: members of both protocols",
    "minibroker/testing/real_kafka.py": "tests/integration/test_real_kafka_option.py",
    "minibroker/replication/isr_change.py": "test_isr_requests: what is asked for",
    "minibroker/server/call.py": "test_interceptor: an interceptor gets it",
    "minibroker/config/entries.py": "test_describe: what they are made of",
    "minibroker/java_formats/key_material.py": "test_stores: what they are made of",
    "minibroker/__main__.py": "tests/integration: every broker there is started through it",
    "minibroker/handlers/encoded_struct.py": "test_metadata_topics, test_describe_configs",
    "minibroker/handlers/fetch_reading.py": "test_fetch: the reading half of Fetch",
    "minibroker/pipeline/inspections/batch_source.py": "tests/pipeline/test_inspect: Spark",
    **{
        f"minibroker/pipeline/{name}.py": "tests/pipeline: the jobs, with Spark and brokers"
        for name in (
            "api",
            "rollups/bad_records",
            "comparisons/sides",
            "archives/dead_letters",
            "archives/decoded",
            "archives/decoded_sink",
            "transforms/dated_ahead",
            "transforms/dead_letters",
            "copies/writer",
            "jobs/archive",
            "jobs/copy",
            "jobs/first_records",
            "jobs/replay",
            "jobs/rollup",
            "launch",
            "outcome",
            "preview",
            "replays/indexed_archive",
            "replays/writer",
            "tables/archived_files",
            "wire/range_losses",
            "wire/produce_queue",
            "wire/coordinators",
            "wire/transactions",
            "sink/begun_batches",
            "sink/task_markers",
            "sink/wire_transaction",
            "groups",
            "lag/oldest_unread",
            "archives/table_sink",
            "archives/table_writer",
            "transforms/archived",
            "transforms/compared",
            "transforms/handed_over",
            "transforms/json_values",
            "transforms/operated",
            "copies/chosen",
            "source/fixed_ranges",
            "transforms/replayed",
            "transforms/windows",
        )
    },
    **{
        f"minibroker/pipeline/verbs/{name}.py": "test_parser, test_declaration: all verbs"
        for name in ("help_text", "inspect", "lag", "maintain", "shared", "table")
    },
    **{
        f"minibroker/pipeline/commands/{name}.py": "test_command_line, there and in tests/pipeline"
        for name in ("compare", "exits", "inspect", "maintain", "one_answer", "stream")
    },
    "minibroker/pipeline/verbs/compare_rules.py": "test_compare: made of words",
    "minibroker/pipeline/comparisons/words.py": "comparisons/test_text: what a person reads",
    "minibroker/pipeline/tables/delta.py": "tables/test_iceberg: the same tests for both",
    "minibroker/security/sasl/client_exchange.py": "test_client: both sides of a login",
    "minibroker/pipeline/rollups/committed_files.py": "tests/pipeline/test_rollup: Spark",
    "minibroker/pipeline/source/frames.py": "tests/pipeline/test_source_rows: with the connector",
    **{
        f"minibroker/groups/classic/{name}.py": "tests/scenario/test_classic_groups.py: transcripts"
        for name in ("events", "joining", "rebalance", "sessions", "syncing")
    },
    "minibroker/groups/member_requests.py": "tests/scenario: what the transcripts are made of",
    **{
        f"minibroker/groups/consumer/{name}.py": "tests/scenario/test_consumer_groups.py"
        for name in ("classic_members", "heartbeat", "leaving", "migration", "step", "targets")
    },
    **{
        f"minibroker/config/tables/{name}.py": "tests/compat/test_config_tables.py: beside Kafka"
        for name in (
            "groups",
            "metadata",
            "network",
            "newer",
            "operations",
            "replication",
            "security",
            "storage",
        )
    },
}


def test_every_module_has_its_unit_tests() -> None:
    found = [
        f"{name_of(path)}: no {name_of(_test_of(path))}"
        for path in PRODUCT
        if path.name != "__init__.py"
        and name_of(path) not in TESTED_ELSEWHERE
        and not _is_compared_with_kafka(path)
        and not _test_of(path).exists()
        and not _shares_a_test(path)
    ]
    assert_none(found, "modules without unit tests of their name:")


def test_every_unit_test_has_its_module() -> None:
    found = []
    for path in sorted(UNIT.rglob("test_*.py")):
        folder = _mirrored(path.parent.relative_to(UNIT))
        module = folder / f"{path.stem.removeprefix('test_')}.py"
        package = folder / path.stem.removeprefix("test_") / "__init__.py"
        if not module.exists() and not package.exists() and not _names_a_part(path, folder):
            found.append(name_of(path))
    assert_none(found, "unit tests named after no module:")


def test_the_list_of_exceptions_is_true() -> None:
    found = [
        name
        for name in TESTED_ELSEWHERE
        if not (ROOT / name).exists() or _test_of(ROOT / name).exists()
    ]
    assert_none(found, "no longer an exception:")


def _test_of(path: Path) -> Path:
    return UNIT / path.relative_to(PACKAGE).parent / f"test_{path.stem}.py"


def _mirrored(folder: Path) -> Path:
    """Return the folder that a folder of tests/unit mirrors: benchmarks/ or one in minibroker/."""
    return (ROOT if folder.parts[:1] == ("benchmarks",) else PACKAGE) / folder


def _is_compared_with_kafka(path: Path) -> bool:
    if name_of(path.parent) != "minibroker/handlers":
        return False
    return any(scenario.api == path.stem for scenario in load_all())


def _shares_a_test(path: Path) -> bool:
    names = [test.stem.removeprefix("test_") for test in _test_of(path).parent.glob("test_*.py")]
    return any(path.stem.endswith("_" + name) for name in names)


def _names_a_part(path: Path, folder: Path) -> bool:
    """Return True for `test_segment_roll.py` beside `segment.py`, or `test_quotas.py` beside
    `alter_quotas.py`.
    """
    name = path.stem.removeprefix("test_")
    return any(
        name.startswith(module.stem + "_") or module.stem.endswith("_" + name)
        for module in folder.glob("*.py")
        if module.stem != "__init__" and not is_generated(module)
    )
