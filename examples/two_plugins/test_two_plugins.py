"""minibroker beside pytest-kafka-broker, which starts Apache Kafka and has the same fixture names.

The same test runs on both. Without `--kafka`, the other plugin skips its half.
"""

from confluent_kafka import Consumer, Producer


def round_trip(bootstrap_servers, topic):
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, b"v")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    (message,) = consumer.consume(1, 30)
    consumer.close()
    return message.value()


def test_on_minibroker(minibroker, minibroker_topic):
    assert round_trip(minibroker.bootstrap, minibroker_topic) == b"v"


def test_on_a_minibroker_of_its_own(minibroker_broker):
    minibroker_broker.create_topic("orders")
    assert round_trip(minibroker_broker.bootstrap, "orders") == b"v"


def test_on_apache_kafka(kafka_broker):
    assert round_trip(kafka_broker.bootstrap_server, "orders") == b"v"
