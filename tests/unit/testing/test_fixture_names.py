"""The fixtures beside plugins that have the same names, and fixtures of a scope of their own.

Small suites run in processes of their own. pytest-kafka-broker is a plugin from the package index:
it has the fixture `kafka_broker` and an option `--kafka` without a value. It wants a download and
Java, so here a file with its names stands for it; `tests/integration/test_examples.py` runs
minibroker beside the real one.
"""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
OPTIONS = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
PREFIXED = "[pytest]\nminibroker_fixtures = prefixed\n"
OTHER_PLUGIN = """
    import pytest

    def pytest_addoption(parser):
        parser.getgroup("Kafka broker").addoption("--kafka", action="store_true")

    @pytest.fixture
    def kafka_broker(pytestconfig):
        return ["of the other plugin", pytestconfig.getoption("kafka")]
    """


@pytest.fixture
def _beside_another_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(other_plugin=OTHER_PLUGIN)
    pytester.syspathinsert()


def test_both_names_are_one_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.minibroker(topics=["orders:3"])
        def test_of_the_run(kafka, minibroker, minibroker_topic, kafka_topic):
            assert kafka is minibroker
            assert kafka.topics == {"orders": 3, minibroker_topic: 1, kafka_topic: 1}

        @pytest.mark.kafka(topics=["of-a-test"])
        def test_of_the_others(
            kafka_broker, minibroker_broker, kafka_cluster, minibroker_cluster, kafka_module,
            minibroker_module, kafka_session, minibroker_session,
        ):
            assert kafka_broker is minibroker_broker
            assert kafka_broker.topics == {"of-a-test": 1}
            assert kafka_cluster is minibroker_cluster
            assert kafka_module is minibroker_module
            assert kafka_session is minibroker_session
        """
    )
    pytester.runpytest_subprocess(*OPTIONS, "-W", "error").assert_outcomes(passed=2)


def test_a_fixture_of_the_project_that_is_named_minibroker_changes_no_other(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def minibroker():
            return "of the project"

        def test_all(minibroker, kafka, kafka_topic, kafka_broker):
            assert minibroker == "of the project"
            assert kafka.topics == {kafka_topic: 1}
            assert kafka_broker.topics == {}
        """
    )
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=1)


def test_a_run_with_prefixed_names_has_no_short_ones(pytester: pytest.Pytester) -> None:
    pytester.makeini(PREFIXED)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.minibroker(topics=["orders:3"])
        def test_of_the_run(minibroker, minibroker_topic):
            assert minibroker.topics == {"orders": 3, minibroker_topic: 1}

        @pytest.mark.minibroker(config={"message.max.bytes": 2000})
        def test_refused(minibroker):
            pass

        def test_short(kafka):
            pass
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*@pytest.mark.minibroker(config=*is for minibroker_broker*"])
    result.stdout.fnmatch_lines(["*fixture 'kafka' not found*"])
    names = pytester.runpytest_subprocess(*OPTIONS, "--markers").stdout
    names.fnmatch_lines(["@pytest.mark.minibroker(topics=*"])
    names.no_fnmatch_line("@pytest.mark.kafka(*")


@pytest.mark.usefixtures("_beside_another_plugin")
@pytest.mark.parametrize(
    ("variable", "value"),
    [("PYTEST_ADDOPTS", "-p other_plugin"), ("PYTEST_PLUGINS", "other_plugin")],
    ids=["loaded before", "loaded after"],
)
def test_another_plugin_keeps_its_fixture_and_its_option(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    pytester.makeini(PREFIXED)
    pytester.makepyfile(
        """
        def test_both(kafka_broker, minibroker_broker, minibroker):
            assert kafka_broker == ["of the other plugin", True]
            assert minibroker_broker.bootstrap != minibroker.bootstrap

        def test_ours_skips(minibroker_cluster):
            pass
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS, "--kafka", "-k", "both")
    result.assert_outcomes(passed=1, deselected=1)
    address = ("--minibroker-kafka", "127.0.0.1:9")
    result = pytester.runpytest_subprocess(*OPTIONS, *address, "-rs", "-k", "ours")
    result.assert_outcomes(skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["*minibroker_cluster is a minibroker of the test's own*"])


@pytest.mark.usefixtures("_beside_another_plugin")
def test_a_run_names_the_plugin_whose_fixture_has_a_short_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(minibroker): pass")
    result = pytester.runpytest_subprocess(*OPTIONS, "-p", "other_plugin", "--kafka")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["minibroker: other_plugin has a fixture kafka_broker too; *minibroker_broker"]
    )


@pytest.mark.parametrize("option", ["--kafka=localhost", "--minibroker-kafka=localhost"])
def test_the_option_has_two_names(pytester: pytest.Pytester, option: str) -> None:
    pytester.makepyfile("def test_one(minibroker): pass")
    result = pytester.runpytest_subprocess(*OPTIONS, option)
    result.stdout.fnmatch_lines(["*--kafka=localhost: expected HOST:PORT*"])


def test_a_wrong_choice_of_names_ends_the_run(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nminibroker_fixtures = long\n")
    result = pytester.runpytest_subprocess(*OPTIONS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*minibroker_fixtures = long: expected `short` *"])


def test_a_factory_makes_fixtures_of_any_scope(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nminibroker_topics = everywhere\n")
    pytester.makeconftest(
        """
        from minibroker.testing import kafka_fixture

        payments = kafka_fixture(
            scope="class", topics=["payments:2"], config={"message.max.bytes": 2000}
        )
        secured = kafka_fixture(security="SASL_PLAINTEXT", users={"alice": "secret"})
        plain = kafka_fixture(scope="module", topics=["plain"])
        """
    )
    pytester.makepyfile(
        """
        import pytest

        class TestOne:
            def test_first(self, payments):
                assert payments.topics == {"everywhere": 1, "payments": 2}
                with pytest.raises(Exception, match="TOO_LARGE"):
                    payments.produce("payments", b"v" * 3000)
                payments.produce("payments", "v")

            def test_second(self, payments):
                assert [record.text for record in payments.records("payments")] == ["v"]

        class TestTwo:
            def test_first(self, payments):
                assert payments.records("payments") == []

            def test_missed(self, payments):
                payments.faults.add("Fetch", delay_ms=1)

        def test_login(secured):
            settings = secured.client_config("confluent-kafka", user="alice")
            assert settings["sasl.password"] == "secret"

        def test_plain(plain):
            assert plain.topics == {"everywhere": 1, "plain": 1}
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["Fault(Fetch, 0 hits): never met a request*"])
    result = pytester.runpytest_subprocess(*OPTIONS, "-rs", "--kafka=127.0.0.1:9", "-k", "login")
    result.assert_outcomes(skipped=1, deselected=5)
    result.stdout.fnmatch_lines(["*secured has security, users, which need a minibroker*"])
