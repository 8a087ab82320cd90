// An idempotent producer: java -cp 'classes:jars/*' NumberedRecords ADDRESS TOPIC
//
// For each line COUNT on standard input it sends that many records, each in a batch of its own. Their
// values are the next numbers from 0 on. Prints "NUMBER at OFFSET" for a record that is acknowledged,
// else "NUMBER failed: ERROR". Ends with its input.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

public class NumberedRecords {
    // A batch without a size has room for one record, and for a second one that is much shorter.
    static final String KEY = "k".repeat(300);

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("max.in.flight.requests.per.connection", "5");
        settings.put("batch.size", "0");
        settings.put("linger.ms", "0");
        settings.put("retry.backoff.ms", "20");
        settings.put("reconnect.backoff.ms", "20");
        settings.put("reconnect.backoff.max.ms", "100");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            int next = 0;
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                for (int end = next + Integer.parseInt(line); next < end; next++) {
                    int number = next;
                    producer.send(
                        new ProducerRecord<>(arguments[1], KEY, Integer.toString(number)),
                        (metadata, error) -> say(number, metadata, error));
                }
            }
        }
    }

    static void say(int number, RecordMetadata metadata, Exception error) {
        String outcome = error == null ? " at " + metadata.offset() : " failed: " + error;
        System.out.println((number + outcome).replace('\n', ' '));
    }
}
