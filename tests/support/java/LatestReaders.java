// Consumers that begin at the end of a topic: java -cp 'classes:jars/*' LatestReaders ADDRESS TOPIC PROTOCOL
//
// A line of the input starts one: its name, its group, its instance or "-". It prints "NAME VALUE"
// for each record. At the value "end GROUP", or when a line is its name alone, it leaves and prints
// "NAME has left".

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class LatestReaders {
    static final Map<String, Boolean> ending = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words.length == 1) {
                ending.put(words[0], true);
                continue;
            }
            Thread reader = new Thread(() -> read(arguments, words[0], words[1], words[2]));
            reader.setDaemon(true);
            reader.start();
        }
    }

    static void read(String[] arguments, String name, String group, String instance) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", group);
        settings.put("group.protocol", arguments[2]);
        settings.put("auto.offset.reset", "latest");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        if (arguments[2].equals("classic")) settings.put("heartbeat.interval.ms", "100");
        if (!instance.equals("-")) settings.put("group.instance.id", instance);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(arguments[1]));
            while (!ending.containsKey(name)) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    if (record.value().equals("end " + group)) ending.put(name, true);
                    else System.out.println(name + " " + record.value());
                }
            }
        }
        ending.remove(name);
        System.out.println(name + " has left");
    }
}
