// A Java client for the tests: java -cp 'classes:jars/*' Records COMMAND ...
//
//   produce ADDRESS TOPIC CODEC PREFIX COUNT   writes PREFIX0 ... PREFIX(COUNT-1), idempotent, acks=all
//   consume ADDRESS TOPIC COUNT                prints COUNT values, one a line, from the beginning
//
// Consumers assign partitions themselves: no group is needed.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Records {
    static final long DEADLINE_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("produce")) {
            produce(arguments[1], arguments[2], arguments[3], arguments[4], Integer.parseInt(arguments[5]));
        } else {
            consume(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
        }
    }

    static void produce(String address, String topic, String codec, String prefix, int count) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        settings.put("compression.type", codec);
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("linger.ms", "2");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                sent.add(producer.send(new ProducerRecord<>(topic, "k" + n, prefix + n)));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }

    static void consume(String address, String topic, int count) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("enable.auto.commit", "false");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(topic).forEach(found -> partitions.add(new TopicPartition(topic, found.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            StringBuilder values = new StringBuilder();
            long deadline = System.currentTimeMillis() + DEADLINE_MS;
            int read = 0;
            while (read < count && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.append(record.value()).append('\n');
                    read++;
                }
            }
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                values.append(record.value()).append('\n');
            }
            System.out.print(values);
        }
    }
}
