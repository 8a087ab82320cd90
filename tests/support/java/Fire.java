// Clients of the exactly-once test: they go on whatever happens to the broker, and say what they did.
//
//     java -cp 'classes:jars/*' Fire write BOOTSTRAP TOPIC PARTITIONS NAME FIRST
//     java -cp 'classes:jars/*' Fire send BOOTSTRAP TOPIC PARTITIONS NAME FIRST
//     java -cp 'classes:jars/*' Fire move BOOTSTRAP INPUT OUTPUT GROUP NAME
//
// `send` has an idempotent producer without transactions: each value is one in these lines.
//
// One line per event on standard output, before the next step begins:
//
//     ready                        the client is at work
//     txn N P:V P:V …              transaction N is about to be ended; values V sent to partitions P
//     commit N / abort N           it was, for sure
//     unknown N                    it may have been committed
//     poll P:O:V …                 what a read of committed records gave
//     error TEXT                   why a client was made anew
//
// A line "stop" on standard input ends it after the transaction in hand.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;

public class Fire {
    static String bootstrap;
    static volatile boolean stopping;
    static int number;
    // Records that a sender sends before it waits for their acknowledgements.
    static final int IN_HAND = 10;

    public static void main(String[] arguments) throws Exception {
        Thread watch = new Thread(Fire::waitForStop);
        watch.setDaemon(true);
        watch.start();
        bootstrap = arguments[1];
        if (arguments[0].equals("write")) {
            write(arguments[2], Integer.parseInt(arguments[3]), arguments[4], Long.parseLong(arguments[5]));
        } else if (arguments[0].equals("send")) {
            send(arguments[2], Integer.parseInt(arguments[3]), Long.parseLong(arguments[5]));
        } else {
            move(arguments[2], arguments[3], arguments[4], arguments[5]);
        }
        say("stopped");
        System.exit(0);
    }

    static void waitForStop() {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            String line = input.readLine();
            while (line != null && !line.equals("stop")) {
                line = input.readLine();
            }
        } catch (java.io.IOException gone) {
            say("error " + gone);
        }
        stopping = true;
    }

    static synchronized void say(String line) {
        System.out.println(line.replace('\n', ' '));
        System.out.flush();
    }

    static KafkaProducer<Long, Long> producer(String id) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        settings.put("transaction.timeout.ms", "5000");
        settings.put("delivery.timeout.ms", "8000");
        settings.put("request.timeout.ms", "4000");
        settings.put("max.block.ms", "15000");
        settings.put("linger.ms", "2");
        settings.put("reconnect.backoff.max.ms", "200");
        KafkaProducer<Long, Long> made =
            new KafkaProducer<>(settings, new LongSerializer(), new LongSerializer());
        try {
            made.initTransactions();
        } catch (KafkaException error) {
            made.close(Duration.ZERO);
            throw error;
        }
        return made;
    }

    static KafkaConsumer<Long, Long> consumer(String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "50");
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("request.timeout.ms", "4000");
        settings.put("default.api.timeout.ms", "15000");
        settings.put("reconnect.backoff.max.ms", "200");
        return new KafkaConsumer<>(settings, new LongDeserializer(), new LongDeserializer());
    }

    // A transaction's end; true when its outcome is known and it was committed.
    static boolean end(KafkaProducer<Long, Long> producer, StringBuilder sent, boolean isCommit) {
        int own = ++number;
        say("txn " + own + sent);
        if (!isCommit) {
            try {
                producer.abortTransaction();
            } finally {
                say("abort " + own);
            }
            return false;
        }
        try {
            producer.commitTransaction();
        } catch (RuntimeException error) {
            say("unknown " + own);
            throw error;
        }
        say("commit " + own);
        return true;
    }

    static void write(String topic, int partitions, String name, long first) {
        Random random = new Random(first);
        long value = first;
        boolean isReady = false;
        while (!stopping) {
            try (KafkaProducer<Long, Long> producer = producer(name)) {
                while (!stopping) {
                    if (!isReady) {
                        isReady = true;
                        say("ready");
                    }
                    producer.beginTransaction();
                    StringBuilder sent = new StringBuilder();
                    int count = 1 + random.nextInt(20);
                    for (int i = 0; i < count; i++) {
                        int partition = random.nextInt(partitions);
                        producer.send(new ProducerRecord<>(topic, partition, null, value));
                        sent.append(" ").append(partition).append(":").append(value++);
                    }
                    end(producer, sent, random.nextInt(5) > 0);
                }
            } catch (RuntimeException error) {
                say("error " + error);
            }
        }
    }

    // It never gives up a record, so none may lack, come twice or out of order.
    static void send(String topic, int partitions, long first) {
        Random random = new Random(first);
        long value = first;
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("delivery.timeout.ms", "600000");
        settings.put("max.block.ms", "600000");
        settings.put("request.timeout.ms", "4000");
        settings.put("linger.ms", "2");
        settings.put("reconnect.backoff.max.ms", "200");
        try (KafkaProducer<Long, Long> producer =
                new KafkaProducer<>(settings, new LongSerializer(), new LongSerializer())) {
            say("ready");
            while (!stopping) {
                for (int i = 0; i < IN_HAND; i++) {
                    int own = ++number;
                    int partition = random.nextInt(partitions);
                    say("txn " + own + " " + partition + ":" + value);
                    producer.send(
                        new ProducerRecord<>(topic, partition, null, value++),
                        (metadata, error) -> {
                            say((error == null ? "commit " : "unknown ") + own);
                            if (error != null) {
                                say("error " + error);
                            }
                        });
                }
                producer.flush();
            }
        }
    }

    static void move(String input, String output, String group, String name) {
        Random random = new Random(name.hashCode());
        boolean isReady = false;
        while (!stopping) {
            try (KafkaConsumer<Long, Long> consumer = consumer(group);
                 KafkaProducer<Long, Long> producer = producer(name)) {
                consumer.subscribe(List.of(input), new ConsumerRebalanceListener() {
                    public void onPartitionsRevoked(Collection<TopicPartition> gone) { }
                    public void onPartitionsAssigned(Collection<TopicPartition> come) {
                        say("assigned");
                    }
                });
                while (!stopping) {
                    ConsumerRecords<Long, Long> found = consumer.poll(Duration.ofMillis(100));
                    if (!isReady) {
                        isReady = true;
                        say("ready");
                    }
                    if (!found.isEmpty()) {
                        moveSome(consumer, producer, found, output, random.nextInt(5) > 0);
                    }
                }
            } catch (RuntimeException error) {
                say("error " + error);
            }
        }
    }

    static void moveSome(
            KafkaConsumer<Long, Long> consumer,
            KafkaProducer<Long, Long> producer,
            ConsumerRecords<Long, Long> found,
            String output,
            boolean isCommit) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        Map<TopicPartition, Long> first = new HashMap<>();
        StringBuilder sent = new StringBuilder();
        StringBuilder polled = new StringBuilder("poll");
        producer.beginTransaction();
        for (ConsumerRecord<Long, Long> record : found) {
            TopicPartition from = new TopicPartition(record.topic(), record.partition());
            first.putIfAbsent(from, record.offset());
            next.put(from, new OffsetAndMetadata(record.offset() + 1));
            producer.send(new ProducerRecord<>(output, record.partition(), null, record.value()));
            sent.append(" ").append(record.partition()).append(":").append(record.value());
            polled.append(" ").append(record.partition()).append(":").append(record.offset())
                .append(":").append(record.value());
        }
        say(polled.toString());
        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
        if (!end(producer, sent, isCommit)) {
            first.forEach(consumer::seek);
        }
    }
}
