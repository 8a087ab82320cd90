"""A DAG: read the orders in Kafka, and write the total of each customer to another topic."""

import json
from collections import Counter
from datetime import UTC, datetime

from airflow.providers.apache.kafka.operators.consume import ConsumeFromTopicOperator
from airflow.providers.apache.kafka.operators.produce import ProduceToTopicOperator
from airflow.sdk import DAG


def order_of(message):
    """Return customer and total of an order, for the next task."""
    order = json.loads(message.value())
    return [order["customer"], order["total"]]


def totals_of(orders):
    """Yield a key and a value for each customer."""
    totals = Counter()
    for customer, total in orders:
        totals[customer] += total
    for customer, total in sorted(totals.items()):
        yield customer, json.dumps({"total": total})


with DAG(
    "daily_totals",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@daily",
    catchup=False,
    render_template_as_native_obj=True,
) as dag:
    reader = ConsumeFromTopicOperator(
        task_id="read",
        topics=["orders"],
        apply_function=order_of,
        return_apply_function_results=True,
        commit_cadence="end_of_operator",
        poll_timeout=10,  # after so many seconds without an order the task ends
    )
    write = ProduceToTopicOperator(
        task_id="write",
        topic="totals",
        producer_function=totals_of,
        producer_function_args=["{{ ti.xcom_pull(task_ids='read') }}"],
    )
    reader >> write
