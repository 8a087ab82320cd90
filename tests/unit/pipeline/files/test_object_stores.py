"""One store under the names of all libraries, from the names of any of them."""

from __future__ import annotations

import pytest

from minibroker.cli.errors import UsageError
from minibroker.pipeline.files.object_stores import (
    ObjectStore,
    bucket_and_key,
    is_object_store,
    store_of,
)
from minibroker.pipeline.options.kinds import STORAGE

MINIO = ObjectStore("http://127.0.0.1:9000", "", "ann", "secret", "token")


def of(
    environment: dict[str, str] | None = None,
    hadoop: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
) -> ObjectStore:
    return store_of("s3a://lake/dir", environment or {}, hadoop or {}, options or {})


@pytest.mark.parametrize(
    "settings",
    [
        {
            "fs.s3a.endpoint": "127.0.0.1:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.access.key": "ann",
            "fs.s3a.secret.key": "secret",
            "fs.s3a.session.token": "token",
        },
        {
            "s3.endpoint": "http://127.0.0.1:9000",
            "s3.access-key-id": "ann",
            "s3.secret-access-key": "secret",
            "s3.session-token": "token",
        },
        {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "ann",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "token",
        },
    ],
)
def test_each_dialect_says_the_same(settings: dict[str, str]) -> None:
    assert of(options=STORAGE.of_python(settings)) == MINIO
    assert of(options=STORAGE.of_words([f"{name}={settings[name]}" for name in settings])) == MINIO


def test_a_store_under_all_names() -> None:
    assert MINIO.for_iceberg() == {
        "s3.endpoint": "http://127.0.0.1:9000",
        "s3.region": "us-east-1",
        "s3.access-key-id": "ann",
        "s3.secret-access-key": "secret",
        "s3.session-token": "token",
        "s3.force-virtual-addressing": "false",
    }
    assert MINIO.for_delta() == {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "ann",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "AWS_ALLOW_HTTP": "true",
    }
    assert MINIO.for_arrow() == {
        "scheme": "http",
        "endpoint_override": "127.0.0.1:9000",
        "region": "us-east-1",
        "access_key": "ann",
        "secret_key": "secret",
        "session_token": "token",
        "force_virtual_addressing": False,
    }
    assert MINIO.for_obstore() == {
        "endpoint": "http://127.0.0.1:9000",
        "region": "us-east-1",
        "access_key_id": "ann",
        "secret_access_key": "secret",
        "session_token": "token",
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True},
    }
    assert MINIO.for_spark() == {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.access.key": "ann",
        "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.session.token": "token",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }


def test_a_store_of_amazon_is_left_to_the_libraries() -> None:
    """They know its address, its style, and the roles of a machine."""
    plain = ObjectStore()
    assert (
        plain.for_iceberg() == plain.for_delta() == plain.for_arrow() == plain.for_obstore() == {}
    )
    assert list(plain.for_spark()) == ["spark.hadoop.fs.s3.impl"]


def test_an_option_wins_over_spark_and_that_over_the_environment() -> None:
    environment = {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "z", "AWS_ENDPOINT_URL": "https://a"}
    hadoop = {"fs.s3a.endpoint": "https://b", "fs.s3a.path.style.access": "false"}
    assert of(environment).region == "a"
    assert of(environment, hadoop).endpoint == "https://b"
    assert of(environment, hadoop).is_path_style, "Hadoop's default says nothing"
    of_bucket = {"fs.s3a.bucket.lake.endpoint": "https://c", "fs.s3a.bucket.other.endpoint": "d"}
    assert of(environment, hadoop | of_bucket).endpoint == "https://c"
    settings = {"s3.endpoint": "https://e", "s3.force-virtual-addressing": "true"}
    assert of(environment, hadoop | of_bucket, settings).endpoint == "https://e"
    assert not of(options=settings).is_path_style


def test_unsigned_requests() -> None:
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    for settings in (
        {"fs.s3a.aws.credentials.provider": provider},
        {"s3.anonymous": "true"},
        {"AWS_SKIP_SIGNATURE": "true"},
    ):
        store = of(options=settings)
        assert store.for_iceberg()["s3.anonymous"] == "true"
        assert store.for_delta()["AWS_SKIP_SIGNATURE"] == "true"
        assert store.for_arrow()["anonymous"]
        assert store.for_obstore()["skip_signature"]
        assert store.for_spark()["spark.hadoop.fs.s3a.aws.credentials.provider"] == provider


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"s3\.endpiont is no setting .*did you mean s3\.end"):
        STORAGE.of_words(["s3.endpiont=x"])
    assert STORAGE.of_words(["spark.hadoop.fs.s3a.endpoint=x"]) == {"fs.s3a.endpoint": "x"}


def test_paths() -> None:
    assert is_object_store("s3://b/x")
    assert is_object_store("s3a://b/x")
    assert not is_object_store("hdfs://b/x")
    assert bucket_and_key("s3://lake/a/b/") == ("lake", "a/b")
    assert bucket_and_key("s3a://lake") == ("lake", "")
