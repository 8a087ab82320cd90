// A member of a share group: java -cp 'classes:jars/*' ShareMember ADDRESS GROUP TOPIC COUNT
//
// Reads COUNT records, acknowledges them, leaves. Prints "read VALUE" for each. Needs a client of 4.2
// or newer.

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ShareMember {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        int missing = Integer.parseInt(arguments[3]);
        try (KafkaShareConsumer<String, String> consumer =
                 new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(arguments[2]));
            while (missing > 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println("read " + record.value());
                    missing--;
                }
                consumer.commitSync();
            }
        }
    }
}
