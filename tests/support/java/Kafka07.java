// A broker of Kafka 0.7 that gets messages of every form, and what its consumer does with them:
// java --add-opens java.base/java.lang=ALL-UNNAMED -cp 'classes:jars/*' Kafka07 ZOOKEEPER PORT LOG_DIRECTORY
//
// Prints JSON: for each topic the values in the order in which the consumer read them, each with the positions
// that it has committed then, and for each such position the value with which a fetch from there begins (null: it
// has none). The log stays in LOG_DIRECTORY. This broker listens on every address of its machine.

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.CRC32;
import kafka.api.FetchRequest;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.consumer.ConsumerTimeoutException;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.message.ByteBufferMessageSet;
import kafka.javaapi.producer.SyncProducer;
import kafka.message.CompressionCodec;
import kafka.message.GZIPCompressionCodec$;
import kafka.message.Message;
import kafka.message.MessageAndOffset;
import kafka.message.NoCompressionCodec$;
import kafka.message.SnappyCompressionCodec$;
import kafka.producer.SyncProducerConfig;
import kafka.server.KafkaConfig;
import kafka.server.KafkaServer;
import org.I0Itec.zkclient.ZkClient;
import org.I0Itec.zkclient.serialize.ZkSerializer;

public class Kafka07 {
    private static final CompressionCodec NONE = NoCompressionCodec$.MODULE$;
    private static final CompressionCodec GZIP = GZIPCompressionCodec$.MODULE$;
    private static final CompressionCodec SNAPPY = SnappyCompressionCodec$.MODULE$;
    private static final int BROKER = 3;
    private static final int FETCH_BYTES = 100_000;

    private final String zookeeper;
    private final int port;

    private Kafka07(String zookeeper, int port) {
        this.zookeeper = zookeeper;
        this.port = port;
    }

    public static void main(String[] arguments) throws Exception {
        Kafka07 kafka = new Kafka07(arguments[0], Integer.parseInt(arguments[1]));
        KafkaServer server = new KafkaServer(new KafkaConfig(kafka.brokerSettings(arguments[2])));
        server.startup();
        kafka.produce();
        List<String> topics = new ArrayList<>();
        for (String topic : new String[] {"plain", "packed", "nested", "old"}) {
            topics.add(quoted(topic) + ": " + kafka.read(topic));
        }
        System.out.println("{" + String.join(",\n", topics) + "}");
        System.out.flush();
        server.shutdown();
        server.awaitShutdown();
        System.exit(0);  // a thread of the consumer stays
    }

    private Properties brokerSettings(String directory) {
        Properties settings = new Properties();
        settings.put("brokerid", "" + BROKER);
        settings.put("hostname", "127.0.0.1");
        settings.put("port", "" + port);
        settings.put("log.dir", directory);
        settings.put("log.file.size", "300");
        settings.put("log.flush.interval", "1");
        settings.put("num.partitions", "2");
        settings.put("zk.connect", zookeeper);
        return settings;
    }

    private void produce() {
        Properties settings = new Properties();
        settings.put("host", "127.0.0.1");
        settings.put("port", "" + port);
        SyncProducer producer = new SyncProducer(new SyncProducerConfig(settings));
        for (int number = 0; number < 14; number++) {
            String value = number == 5 ? "" : "plain " + number + " " + "x".repeat(number * 5);
            send(producer, "plain", number % 5 == 4 ? 1 : 0, text(value));
        }
        send(producer, "packed", 0, text("packed 0"), text("packed 1"));
        send(producer, "packed", 0, packed(GZIP, text("packed 2"), text("packed 3"), text("packed 4")));
        send(producer, "packed", 0, packed(SNAPPY, text("packed 5"), text("packed 6")));
        send(producer, "packed", 0, text("packed 7"));
        Message alone = packed(GZIP, text("packed 8"));
        send(producer, "packed", 0, alone, packed(SNAPPY, text("packed 9"), text("packed 10 " + "y".repeat(300))));
        send(producer, "packed", 0, text("packed 11"));
        send(producer, "nested", 0, text("nested 0"));
        Message inner = packed(SNAPPY, text("nested 2"), text("nested 3"));
        send(producer, "nested", 0, packed(GZIP, text("nested 1"), inner, text("nested 4")));
        Message first = packed(GZIP, text("nested 5"));
        send(producer, "nested", 0, packed(SNAPPY, first, packed(GZIP, text("nested 6"), text("nested 7"))));
        send(producer, "nested", 0, text("nested 8"));
        send(producer, "old", 0, old("old 0"), old("old 1"));
        send(producer, "old", 0, packed(GZIP, old("old 2"), text("old 3")));
        send(producer, "old", 0, old("old 4"));
        producer.close();
    }

    private static void send(SyncProducer producer, String topic, int partition, Message... messages) {
        producer.send(topic, partition, new ByteBufferMessageSet(NONE, Arrays.asList(messages)));
    }

    private static Message text(String value) {
        return new Message(value.getBytes(StandardCharsets.UTF_8));
    }

    // The API makes a set of a compressed message: the length before it is taken away.
    private static Message packed(CompressionCodec codec, Message... messages) {
        ByteBuffer buffer = new ByteBufferMessageSet(codec, Arrays.asList(messages)).getBuffer().duplicate();
        buffer.rewind();
        int size = buffer.getInt();
        ByteBuffer content = buffer.slice();
        content.limit(size);
        return new Message(content.slice());
    }

    // A message of magic 0, as producers before compression made it.
    private static Message old(String value) {
        byte[] payload = value.getBytes(StandardCharsets.UTF_8);
        CRC32 crc = new CRC32();
        crc.update(payload);
        ByteBuffer buffer = ByteBuffer.allocate(5 + payload.length);
        buffer.put((byte) 0).putInt((int) crc.getValue()).put(payload).rewind();
        return new Message(buffer);
    }

    private String read(String topic) {
        Properties settings = new Properties();
        settings.put("zk.connect", zookeeper);
        settings.put("groupid", "readers");
        settings.put("autocommit.enable", "false");
        settings.put("autooffset.reset", "smallest");
        settings.put("consumer.timeout.ms", "5000");
        ConsumerConnector consumer = Consumer.createJavaConsumerConnector(new ConsumerConfig(settings));
        ConsumerIterator<Message> messages = consumer
            .createMessageStreams(Collections.singletonMap(topic, 1)).get(topic).get(0).iterator();
        List<String> values = new ArrayList<>();
        Set<String> positions = new LinkedHashSet<>();
        try {
            while (messages.hasNext()) {
                String value = quoted(textOf(messages.next().message()));
                consumer.commitOffsets();
                List<String> committed = committed(topic);
                positions.addAll(committed);
                values.add("[" + value + ", [" + String.join(", ", committed) + "]]");
            }
        } catch (ConsumerTimeoutException end) {
            System.err.println("the consumer has read " + values.size() + " messages of " + topic);
        }
        consumer.shutdown();
        return "{\"read\": [\n" + String.join(",\n", values) + "],\n\"next\": {\n" + next(topic, positions) + "}}";
    }

    // Each is "BROKER-PARTITION:POSITION".
    private List<String> committed(String topic) {
        ZkClient tree = new ZkClient(zookeeper, 10_000, 10_000, new TextSerializer());
        List<String> positions = new ArrayList<>();
        String directory = "/consumers/readers/offsets/" + topic;
        for (String partition : new TreeSet<>(tree.getChildren(directory))) {
            positions.add(quoted(partition + ":" + tree.readData(directory + "/" + partition)));
        }
        tree.close();
        return positions;
    }

    private String next(String topic, Set<String> positions) {
        SimpleConsumer consumer = new SimpleConsumer("127.0.0.1", port, 10_000, FETCH_BYTES);
        List<String> values = new ArrayList<>();
        for (String position : positions) {
            String[] parts = position.replace("\"", "").split("[-:]");
            FetchRequest request =
                new FetchRequest(topic, Integer.parseInt(parts[1]), Long.parseLong(parts[2]), FETCH_BYTES);
            Iterator<MessageAndOffset> fetched = consumer.fetch(request).iterator();
            values.add(position + ": " + (fetched.hasNext() ? quoted(textOf(fetched.next().message())) : "null"));
        }
        consumer.close();
        return String.join(",\n", values);
    }

    private static String textOf(Message message) {
        ByteBuffer payload = message.payload();
        byte[] bytes = new byte[payload.remaining()];
        payload.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static String quoted(String text) {
        return '"' + text + '"';
    }

    private static class TextSerializer implements ZkSerializer {
        public byte[] serialize(Object value) {
            return value.toString().getBytes(StandardCharsets.UTF_8);
        }

        public Object deserialize(byte[] bytes) {
            return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
        }
    }
}
