// One member of a group: java -cp 'classes:jars/*' GroupMember ADDRESS GROUP TOPIC PROTOCOL [INSTANCE]
//
// PROTOCOL is classic or consumer; TOPIC is a name, or /PATTERN. Prints a line per event: "has 0 1"
// when its partitions changed, "read VALUE" per record. Commits after every poll; SIGTERM leaves.
// Runs with clients from 3.9 on; patterns are of 4.x, classic sessions are -Dsession.timeout.ms long.

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

public class GroupMember {
    static KafkaConsumer<String, String> consumer;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("group.protocol", arguments[3]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("metadata.max.age.ms", "500");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        if (arguments.length > 4) settings.put("group.instance.id", arguments[4]);
        if (arguments[3].equals("classic")) {
            settings.put("session.timeout.ms", System.getProperty("session.timeout.ms", "6000"));
            settings.put("heartbeat.interval.ms", "200");
        }
        consumer = new KafkaConsumer<>(settings);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                ended.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                say();
            }

            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            }
        };
        String topic = arguments[2];
        if (topic.startsWith("/") && arguments[3].equals("consumer")) {
            consumer.subscribe(new SubscriptionPattern(topic.substring(1)), listener);
        } else {
            consumer.subscribe(List.of(topic), listener);
        }
        try {
            run();
        } catch (WakeupException error) {
            consumer.close();
        } finally {
            ended.countDown();
        }
    }

    static void run() {
        while (true) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                System.out.println("read " + record.value());
            }
            try {
                consumer.commitSync();
            } catch (CommitFailedException | RebalanceInProgressException error) {
                System.out.println("not committed");
            }
        }
    }

    static void say() {
        StringBuilder line = new StringBuilder("has");
        consumer.assignment().stream().map(TopicPartition::partition).sorted().forEach(number -> line.append(' ').append(number));
        System.out.println(line);
    }
}
