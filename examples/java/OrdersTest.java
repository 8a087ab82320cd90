import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.URI;
import java.net.http.*;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;

/** The protocol in Java: start minibroker, wait for its ready file, make a client's request fail. */
class OrdersTest {
    static Process broker;
    static List<String> addresses; // the broker's, the control API's

    @BeforeAll
    static void start(@TempDir Path directory) throws Exception {
        Path ready = directory.resolve("ready");
        broker = new ProcessBuilder("minibroker", "serve", "--memory", "--topic", "orders", "--listen", "127.0.0.1:0",
            "--control", "127.0.0.1:0", "--ready-file", ready.toString()).inheritIO().start();
        while (!Files.exists(ready)) Thread.sleep(5);
        addresses = Files.readAllLines(ready).stream().map(line -> line.split(" on ")[1]).toList();
    }

    @AfterAll
    static void stop() throws Exception {
        broker.destroy();
        assertEquals(0, broker.waitFor());
    }

    @Test
    void aRecordIsWrittenThoughTheLeaderMoves() throws Exception {
        var fault = "{\"api\": \"Produce\", \"error\": \"NOT_LEADER_OR_FOLLOWER\", \"times\": 2}";
        var request = HttpRequest.newBuilder(URI.create(addresses.get(1) + "/faults"))
            .POST(HttpRequest.BodyPublishers.ofString(fault)).build();
        assertEquals(201, HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode());
        Map<String, Object> settings = Map.of("bootstrap.servers", addresses.get(0));
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            assertEquals(0, producer.send(new ProducerRecord<>("orders", "first")).get().offset());
        }
    }
}
