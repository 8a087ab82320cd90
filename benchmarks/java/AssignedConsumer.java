import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads one partition from its start with the settings of Kafka's ConsumerPerformance, but with an assigned partition:
 * a broker needs no consumer groups for it. Arguments: bootstrap server, topic, number of records, and perhaps a client
 * id. Prints the bytes of the values and the nanoseconds from the first poll to the last record; under a client id of
 * its own, which may be throttled, also how far it is, ten times a second.
 */
public final class AssignedConsumer {
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final Duration THROTTLED_PATIENCE = Duration.ofSeconds(60);
    private static final long REPORT_NS = 100_000_000;

    public static void main(String[] arguments) {
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        long wanted = Long.parseLong(arguments[2]);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(arguments))) {
            consumer.assign(List.of(partition));
            // Connects and learns who leads before the clock starts, as joining a group would.
            Map<TopicPartition, Long> start = consumer.beginningOffsets(List.of(partition));
            consumer.seek(partition, start.get(partition));
            long begun = System.nanoTime();
            long lastProgress = begun;
            boolean isReporting = arguments.length > 3;
            long patienceNs = (isReporting ? THROTTLED_PATIENCE : PATIENCE).toNanos();
            long lastReport = 0;
            long records = 0;
            long bytes = 0;
            while (records < wanted) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    records++;
                    bytes += record.value().length;
                    lastProgress = System.nanoTime();
                }
                if (isReporting && System.nanoTime() - lastReport > REPORT_NS) {
                    lastReport = System.nanoTime();
                    System.out.println("at " + (lastReport - begun) + " " + bytes);
                }
                if (System.nanoTime() - lastProgress > patienceNs) {
                    throw new IllegalStateException("only " + records + " of " + wanted + " records came");
                }
            }
            System.out.println("read " + bytes + " bytes in " + (System.nanoTime() - begun) + " ns");
        }
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        if (arguments.length > 3) {
            settings.put(ConsumerConfig.CLIENT_ID_CONFIG, arguments[3]);
        }
        settings.put(ConsumerConfig.RECEIVE_BUFFER_CONFIG, 2 * 1024 * 1024);
        int fetchBytes = arguments.length > 3 ? 128 * 1024 : 1024 * 1024;
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, fetchBytes);
        settings.put(ConsumerConfig.CHECK_CRCS_CONFIG, false);
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        return settings;
    }
}
