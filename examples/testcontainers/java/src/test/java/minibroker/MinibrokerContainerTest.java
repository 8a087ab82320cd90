package minibroker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.wait.strategy.HttpWaitStrategy;
import org.testcontainers.containers.wait.strategy.WaitStrategy;

/** What the container asks of Docker. No engine is needed for that, and none is used. */
class MinibrokerContainerTest {
    static class Inspected extends MinibrokerContainer {
        WaitStrategy waitStrategy() {
            return getWaitStrategy();
        }
    }

    private final Inspected kafka = new Inspected();

    MinibrokerContainerTest() {
        kafka.withTopics("orders:3", "names:1:cleanup.policy=compact");
    }

    @Test
    void itExposesTheBrokerAndTheControlApi() {
        assertEquals(List.of(9092, 9644), kafka.getExposedPorts());
        assertInstanceOf(HttpWaitStrategy.class, kafka.waitStrategy());
    }

    @Test
    void itsVariablesAreThoseOfTheImage() {
        var variables = kafka.getEnvMap();
        var token = variables.remove("MINIBROKER_CONTROL_TOKEN");
        assertEquals(36, token.length());
        assertEquals(
            Map.of(
                "KAFKA_LISTENERS", "PLAINTEXT://:9092,NETWORK://:19092",
                "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "PLAINTEXT:PLAINTEXT,NETWORK:PLAINTEXT",
                "KAFKA_INTER_BROKER_LISTENER_NAME", "NETWORK",
                "KAFKA_CREATE_TOPICS_SEPARATOR", ";",
                "KAFKA_CREATE_TOPICS", "orders:3;names:1:cleanup.policy=compact",
                "MINIBROKER_CONTROL", "0.0.0.0:9644"),
            variables);
    }

    @Test
    void itWaitsForAScriptThatKnowsThePublishedPort() {
        var script = "/etc/kafka/minibroker-start.sh";
        var wait = "while [ ! -s " + script + " ]; do sleep 0.05; done; exec " + script;
        assertArrayEquals(new String[] {"sh", "-c", wait}, kafka.getCommandParts());
        assertEquals(
            """
            #!/bin/sh
            export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:49153,NETWORK://kafka:19092
            exec /etc/kafka/docker/run
            """,
            MinibrokerContainer.startScript("localhost", 49153, "kafka"));
    }
}
