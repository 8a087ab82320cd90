"""Counts of words in windows of a minute, in the manner of Faust, in plain Python.

The table is a compacted changelog topic, which a counter reads at its start. The count of a window
goes to the topic `counts` once the records' time is a grace beyond its end.
"""

import json

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

WINDOW_MS, GRACE_MS = 60_000, 10_000
WORDS, CHANGELOG, COUNTS = "words", "counter-changelog", "counts"


class WindowedCounter:
    """A counter of one partition of `words`; `poll` until all is read."""

    def __init__(self, bootstrap_servers, group="counter"):
        settings = {"bootstrap_servers": bootstrap_servers}
        self._producer = KafkaProducer(**settings, linger_ms=0, retry_backoff_ms=20)
        self._consumer = KafkaConsumer(
            **settings, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        self._consumer.assign([TopicPartition(WORDS, 0)])
        self.table = self._restore(settings)
        self.time_ms = 0

    def _restore(self, settings):
        place = TopicPartition(CHANGELOG, 0)
        with_table = KafkaConsumer(**settings, group_id=None, enable_auto_commit=False)
        with_table.assign([place])
        with_table.seek_to_beginning(place)
        end = with_table.end_offsets([place])[place]
        table = {}
        while with_table.position(place) < end:
            for record in with_table.poll(timeout_ms=100).get(place, ()):
                if record.value is None:
                    table.pop(record.key, None)
                else:
                    table[record.key] = int(record.value)
        with_table.close()
        return table

    def poll(self, timeout_ms=100):
        """Count new records; return how many there were."""
        records = [record for part in self._consumer.poll(timeout_ms).values() for record in part]
        for record in records:
            self.time_ms = max(self.time_ms, record.timestamp)
            start_ms = record.timestamp - record.timestamp % WINDOW_MS
            if start_ms + WINDOW_MS + GRACE_MS > self.time_ms:
                self._set(b"%d|%s" % (start_ms, record.value), 1)
        self._close_windows()
        if records:
            self._producer.flush()
            self._consumer.commit()
        return len(records)

    def _set(self, key, more):
        self.table[key] = self.table.get(key, 0) + more
        self._producer.send(CHANGELOG, key=key, value=b"%d" % self.table[key])

    def _close_windows(self):
        for key in sorted(self.table):
            start, word = key.split(b"|", 1)
            if int(start) + WINDOW_MS + GRACE_MS <= self.time_ms:
                count = {"window": int(start), "word": word.decode(), "count": self.table.pop(key)}
                self._producer.send(COUNTS, json.dumps(count).encode(), key=word)
                self._producer.send(CHANGELOG, key=key, value=None)

    def close(self):
        self._consumer.close(autocommit=False)
        self._producer.close()
