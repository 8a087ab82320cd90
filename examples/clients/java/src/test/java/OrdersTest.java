import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import minibroker.control.*;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The generated client of the control API, on a minibroker of its own. */
class OrdersTest {
    static Process broker;
    static DefaultApi control;

    @BeforeAll
    static void start(@TempDir Path directory) throws Exception {
        Path ready = directory.resolve("ready");
        broker = new ProcessBuilder("minibroker", "serve", "--memory", "--topic", "orders", "--listen", "127.0.0.1:0",
            "--control", "127.0.0.1:0", "--ready-file", ready.toString()).inheritIO().start();
        while (!Files.exists(ready)) Thread.sleep(5);
        String url = Files.readAllLines(ready).get(1).split(" on ")[1];
        var client = new ApiClient();
        client.updateBaseUri(url);
        control = new DefaultApi(client);
    }

    @AfterAll
    static void stop() throws Exception {
        broker.destroy();
        assertEquals(0, broker.waitFor());
    }

    @Test
    void recordsAreWrittenAndRead() throws Exception {
        var order = new NewRecord().key("o-1").value(Map.of("amount", 12)).headers(List.of(List.of("source", "web")));
        var tombstone = new NewRecord().key("o-1");
        var written = control.writeRecords("orders", new NewRecords().records(List.of(order, tombstone)));
        assertEquals(List.of(0L, 1L), written.getRecords().stream().map(WrittenView::getOffset).toList());

        var read = control.readRecords(
                "orders", 0L, 0L, null, null, null, null, "json", null, 10_000L, 2L, null, null, null, null);
        assertEquals(Map.of("amount", 12), read.getRecords().get(0).getValue());
        assertEquals("o-1", read.getRecords().get(1).getKey());
        assertEquals(2L, read.getPositions().get(0).getNextOffset());
    }

    @Test
    void aFaultIsAddedAndRemoved() throws Exception {
        var rule = new FaultRule().api("Produce").error("NOT_LEADER_OR_FOLLOWER").times(2L);
        var fault = control.addFault(rule);
        assertEquals(2L, fault.getTimes());
        assertEquals(0L, control.removeFault(fault.getId()).getHits());
    }

    @Test
    void aWaitSaysWhatThereWas() {
        var failure = assertThrows(ApiException.class, () -> control.waitUntilReady("billing", 0L, 2L));
        assertEquals(504, failure.getCode());
        assertTrue(failure.getResponseBody().contains("there is no such group"));
    }
}
