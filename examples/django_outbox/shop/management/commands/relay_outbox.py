"""`python manage.py relay_outbox`: write what is in the outbox to Kafka."""

from django.conf import settings
from django.core.management.base import BaseCommand

from shop.relay import make_producer, relay_batch


class Command(BaseCommand):
    """The command; cron or a loop of a process manager calls it."""

    help = "Write the records of the outbox to Kafka, until it is empty."

    def handle(self, *args, **options):
        """Relay batches until one is empty."""
        producer = make_producer(settings.KAFKA_BOOTSTRAP_SERVERS)
        count = 0
        while batch_size := relay_batch(producer):
            count += batch_size
        self.stdout.write(f"{count} records written")
