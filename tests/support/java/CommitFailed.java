// Commits that a group must refuse:
//     java -cp 'classes:jars/*' CommitFailed ADDRESS TOPIC DIRECTORY PROTOCOL…
//
// TOPIC has two partitions; PROTOCOL is classic or consumer. For each protocol, in groups of its own,
// prints "PROTOCOL STEP OUTCOME", where the outcome is "committed" or the name of the exception:
//
//     late       max.poll.interval.ms passed, another member has its partitions now
//     again      the late one has polled and is a member again
//     stranger   a consumer that assigns, while the group lives
//     alone      the same, once the members have left
//     paused     after "PROTOCOL stop-me" this process must be stopped (SIGSTOP) until another
//                member has its partitions; then DIRECTORY gets the file PROTOCOL, and the process
//                is continued

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class CommitFailed {
    static final int PARTITIONS = 2;
    static String address;
    static String topic;
    static Path directory;
    static String protocol;

    public static void main(String[] arguments) throws Exception {
        address = arguments[0];
        topic = arguments[1];
        directory = Path.of(arguments[2]);
        for (String each : List.of(arguments).subList(3, arguments.length)) {
            protocol = each;
            late();
            paused();
        }
    }

    static KafkaConsumer<String, String> consumer(String group, String clientId, int pollIntervalMs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", group + "-" + protocol);
        settings.put("group.protocol", protocol);
        settings.put("client.id", clientId);
        settings.put("max.poll.interval.ms", Integer.toString(pollIntervalMs));
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", "5000");
            settings.put("heartbeat.interval.ms", "100");
        }
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void late() {
        try (KafkaConsumer<String, String> stranger = consumer("late", "by-hand", 60_000)) {
            stranger.assign(List.of(new TopicPartition(topic, 0)));
            try (KafkaConsumer<String, String> late = consumer("late", "late", 3000);
                 KafkaConsumer<String, String> other = consumer("late", "other", 60_000)) {
                late.subscribe(List.of(topic));
                other.subscribe(List.of(topic));
                pollUntilAll(late);
                pollUntilAll(other);
                commit("late", late);
                commit("stranger", stranger);
                while (late.assignment().size() != 1 || other.assignment().size() != 1) {
                    other.poll(Duration.ofMillis(50));
                    late.poll(Duration.ofMillis(50));
                }
                int own = late.assignment().iterator().next().partition();
                commit("again", late, own);
            }
            commit("alone", stranger);
        }
    }

    static void paused() throws InterruptedException {
        try (KafkaConsumer<String, String> paused = consumer("paused", "paused", 60_000)) {
            paused.subscribe(List.of(topic));
            pollUntilAll(paused);
            say("stop-me");
            while (Files.notExists(directory.resolve(protocol))) {
                Thread.sleep(10);
            }
            commit("paused", paused);
        }
    }

    static void pollUntilAll(KafkaConsumer<String, String> consumer) {
        while (consumer.assignment().size() != PARTITIONS) {
            consumer.poll(Duration.ofMillis(50));
        }
    }

    static void commit(String step, KafkaConsumer<String, String> consumer) {
        commit(step, consumer, 0);
    }

    static void commit(String step, KafkaConsumer<String, String> consumer, int partition) {
        try {
            consumer.commitSync(Map.of(new TopicPartition(topic, partition), new OffsetAndMetadata(1)));
            say(step + " committed");
        } catch (KafkaException error) {
            say(step + " " + error.getClass().getSimpleName() + " " + error.getMessage());
        }
    }

    static void say(String text) {
        System.out.println(protocol + " " + text.replace('\n', ' '));
        System.out.flush();
    }
}
