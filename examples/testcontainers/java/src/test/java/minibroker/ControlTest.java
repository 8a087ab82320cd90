package minibroker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.ProcessBuilder.Redirect;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import minibroker.control.Advance;
import minibroker.control.FaultRule;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The container's calls on a process of this machine, whose ports are as Docker would publish them. */
class ControlTest {
    static class Local extends MinibrokerContainer {
        final Map<Integer, Integer> published = new HashMap<>();

        @Override
        public String getHost() {
            return "127.0.0.1";
        }

        @Override
        public Integer getMappedPort(int port) {
            return published.get(port);
        }
    }

    static final Local kafka = new Local();
    static Process process;

    @BeforeAll
    static void start(@TempDir Path directory) throws Exception {
        Path ready = directory.resolve("ready");
        process = new ProcessBuilder("minibroker", "serve", "--memory", "--listen", "127.0.0.1:0",
            "--control", "127.0.0.1:0", "--control-token", kafka.getEnvMap().get("MINIBROKER_CONTROL_TOKEN"),
            "--ready-file", ready.toString()).redirectOutput(Redirect.DISCARD).redirectError(Redirect.INHERIT).start();
        while (process.isAlive() && !Files.exists(ready)) Thread.sleep(5);
        var ports = Files.readAllLines(ready).stream()
            .map(line -> Integer.valueOf(line.substring(line.lastIndexOf(':') + 1))).toList();
        kafka.published.put(MinibrokerContainer.CLIENT_PORT, ports.get(0));
        kafka.published.put(MinibrokerContainer.CONTROL_PORT, ports.get(1));
    }

    @AfterAll
    static void stop() throws Exception {
        process.destroy();
        process.waitFor();
    }

    @Test
    void aFaultMeetsAClient() throws Exception {
        var fault = kafka.control().addFault(new FaultRule().api("Produce").error("NOT_LEADER_OR_FOLLOWER").times(2L));
        Map<String, Object> settings = Map.of("bootstrap.servers", kafka.getBootstrapServers(), "retry.backoff.ms", 10);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            assertEquals(0, producer.send(new ProducerRecord<>("orders", "first")).get().offset());
        }
        assertEquals(2L, kafka.control().removeFault(fault.getId()).getHits());
    }

    @Test
    void theClockMoves() throws Exception {
        long before = kafka.control().clock().getNowMs();
        long after = kafka.control().advanceClock(new Advance().minutes(BigDecimal.TEN)).getNowMs();
        assertEquals(10, (after - before) / 60_000);
    }

    @Test
    void aSeedIsLoaded() throws Exception {
        var loaded = kafka.control().loadSeed("{\"topic\": \"names\", \"value\": \"alice\"}\n");
        assertEquals(Map.of("names", 1L), loaded.getRecords());
    }
}
