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
 * a broker needs no consumer groups for it. Arguments: bootstrap server, topic, number of records. Prints the bytes of
 * the values and the nanoseconds from the first poll to the last record.
 */
public final class AssignedConsumer {
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    public static void main(String[] arguments) {
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        long wanted = Long.parseLong(arguments[2]);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(arguments[0]))) {
            consumer.assign(List.of(partition));
            // Connects and learns who leads before the clock starts, as joining a group would.
            Map<TopicPartition, Long> start = consumer.beginningOffsets(List.of(partition));
            consumer.seek(partition, start.get(partition));
            long begun = System.nanoTime();
            long lastProgress = begun;
            long records = 0;
            long bytes = 0;
            while (records < wanted) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    records++;
                    bytes += record.value().length;
                    lastProgress = System.nanoTime();
                }
                if (System.nanoTime() - lastProgress > PATIENCE.toNanos()) {
                    throw new IllegalStateException("only " + records + " of " + wanted + " records came");
                }
            }
            System.out.println("read " + bytes + " bytes in " + (System.nanoTime() - begun) + " ns");
        }
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ConsumerConfig.RECEIVE_BUFFER_CONFIG, 2 * 1024 * 1024);
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 1024 * 1024);
        settings.put(ConsumerConfig.CHECK_CRCS_CONFIG, false);
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        return settings;
    }
}
