// A transactional producer and a read-process-write loop of Apache Kafka's own client.
//
//     java -cp 'classes:jars/*' Transactions BOOTSTRAP INPUT OUTPUT GROUP COUNT
//
// Writes COUNT records to INPUT in transactions of ten, every third of them aborted; then moves what
// is committed to OUTPUT, offsets in the same transactions, every fourth of those aborted and done
// again; then lets a second producer of the same transactional id fence the first. Prints one line
// per fact, "moved" last.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactions {
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        String input = arguments[1];
        String output = arguments[2];
        String group = arguments[3];
        int count = Integer.parseInt(arguments[4]);
        int committed = write(input, count);
        System.out.println("committed " + committed);
        int moved = move(input, output, group, committed);
        fence(output);
        System.out.println("moved " + moved);
    }

    static KafkaProducer<String, String> producer(String id) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        settings.put("linger.ms", "0");
        KafkaProducer<String, String> made =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        made.initTransactions();
        return made;
    }

    static int write(String topic, int count) {
        int committed = 0;
        try (KafkaProducer<String, String> producer = producer("writer-" + topic)) {
            for (int first = 0; first < count; first += 10) {
                producer.beginTransaction();
                for (int number = first; number < first + 10; number++) {
                    producer.send(new ProducerRecord<>(topic, number % 2, null, "" + number));
                }
                if (first / 10 % 3 == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    committed += 10;
                }
            }
        }
        return committed;
    }

    static int move(String input, String output, String group, int expected) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "7");
        int moved = 0;
        int number = 0;
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
             KafkaProducer<String, String> producer = producer("mover-" + input)) {
            consumer.subscribe(List.of(input));
            while (moved < expected) {
                ConsumerRecords<String, String> found = consumer.poll(Duration.ofMillis(200));
                if (found.isEmpty()) {
                    continue;
                }
                boolean isAborted = number++ % 4 == 3;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                Map<TopicPartition, Long> first = new HashMap<>();
                for (ConsumerRecord<String, String> record : found) {
                    TopicPartition from = new TopicPartition(record.topic(), record.partition());
                    first.putIfAbsent(from, record.offset());
                    next.put(from, new OffsetAndMetadata(record.offset() + 1));
                    producer.send(new ProducerRecord<>(output, record.partition(), null, record.value()));
                }
                producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                if (isAborted) {
                    producer.abortTransaction();
                    first.forEach(consumer::seek);
                } else {
                    producer.commitTransaction();
                    moved += found.count();
                }
            }
        }
        return moved;
    }

    static void fence(String topic) {
        KafkaProducer<String, String> old = producer("fenced-" + topic);
        old.beginTransaction();
        old.send(new ProducerRecord<>(topic, 0, null, "never read"));
        old.flush();
        try (KafkaProducer<String, String> young = producer("fenced-" + topic)) {
            try {
                old.commitTransaction();
                System.out.println("not fenced");
            } catch (KafkaException error) {
                System.out.println("fenced " + error.getClass().getSimpleName());
            }
            young.beginTransaction();
            young.abortTransaction();
        }
        old.close(Duration.ZERO);
    }
}
