package minibroker;

import com.github.dockerjava.api.command.InspectContainerResponse;
import java.util.UUID;
import minibroker.control.ApiClient;
import minibroker.control.DefaultApi;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.images.builder.Transferable;
import org.testcontainers.utility.DockerImageName;

/**
 * minibroker as a container.
 *
 * <pre>
 * try (var kafka = new MinibrokerContainer().withTopics("orders:3")) {
 *     kafka.start();
 *     kafka.control().addFault(new FaultRule().api("Produce").error("NOT_LEADER_OR_FOLLOWER").times(2L));
 *     runMyService(kafka.getBootstrapServers());
 * }
 * </pre>
 *
 * <p>Clients of this machine use {@link #getBootstrapServers}. Containers of the same network use NAME:19092.
 */
public class MinibrokerContainer extends GenericContainer<MinibrokerContainer> {
    static final int CLIENT_PORT = 9092;
    static final int NETWORK_PORT = 19092;
    static final int CONTROL_PORT = 9644;
    static final String START_SCRIPT = "/etc/kafka/minibroker-start.sh";

    private final String token = UUID.randomUUID().toString();

    /** Takes the image of `docker build -t minibroker .`. */
    public MinibrokerContainer() {
        this("minibroker:latest");
    }

    public MinibrokerContainer(String image) {
        super(DockerImageName.parse(image));
        withExposedPorts(CLIENT_PORT, CONTROL_PORT);
        withEnv("KAFKA_LISTENERS", "PLAINTEXT://:" + CLIENT_PORT + ",NETWORK://:" + NETWORK_PORT);
        withEnv("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "PLAINTEXT:PLAINTEXT,NETWORK:PLAINTEXT");
        withEnv("KAFKA_INTER_BROKER_LISTENER_NAME", "NETWORK");
        withEnv("MINIBROKER_CONTROL", "0.0.0.0:" + CONTROL_PORT);
        withEnv("MINIBROKER_CONTROL_TOKEN", token);
        // The port of this machine is known once the container runs: only then it gets its start script.
        withCommand("sh", "-c", "while [ ! -s %1$s ]; do sleep 0.05; done; exec %1$s".formatted(START_SCRIPT));
        waitingFor(Wait.forHttp("/health/ready").forPort(CONTROL_PORT));
    }

    /** Makes these topics at the start: "orders", "orders:3", "orders:3:cleanup.policy=compact". */
    public MinibrokerContainer withTopics(String... topics) {
        withEnv("KAFKA_CREATE_TOPICS_SEPARATOR", ";");
        return withEnv("KAFKA_CREATE_TOPICS", String.join(";", topics));
    }

    @Override
    protected void containerIsStarting(InspectContainerResponse info) {
        var names = getNetworkAliases();
        var name = getNetwork() == null || names.isEmpty() ? info.getConfig().getHostName() : names.get(0);
        var script = startScript(getHost(), getMappedPort(CLIENT_PORT), name);
        copyFileToContainer(Transferable.of(script, 0755), START_SCRIPT);
    }

    /** Returns the script that starts the broker, which clients reach at HOST:PORT. */
    static String startScript(String host, int port, String networkName) {
        return """
            #!/bin/sh
            export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://%s:%d,NETWORK://%s:%d
            exec /etc/kafka/docker/run
            """.formatted(host, port, networkName, NETWORK_PORT);
    }

    /** Returns HOST:PORT for clients of this machine. */
    public String getBootstrapServers() {
        return getHost() + ":" + getMappedPort(CLIENT_PORT);
    }

    /** Returns the control API: faults, the clock, seeds, records, waits, what the broker saw. */
    public DefaultApi control() {
        var client = new ApiClient();
        client.updateBaseUri("http://" + getHost() + ":" + getMappedPort(CONTROL_PORT));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
        return new DefaultApi(client);
    }
}
