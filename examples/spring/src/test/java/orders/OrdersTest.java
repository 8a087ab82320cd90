package orders;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.test.context.DynamicPropertyRegistrar;

/** The application on a broker that lives as long as Spring's context. */
@SpringBootTest(properties = "logging.level.org.apache.kafka=warn")
class OrdersTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    @TestConfiguration(proxyBeanMethods = false)
    static class Configuration {
        @Bean(destroyMethod = "close")
        Minibroker minibroker() throws Exception {
            return new Minibroker("orders", "invoices", "orders-dlt");
        }

        @Bean
        DynamicPropertyRegistrar addressOf(Minibroker minibroker) {
            return registry -> registry.add("spring.kafka.bootstrap-servers", minibroker::address);
        }
    }

    @Autowired Minibroker minibroker;
    @Autowired KafkaTemplate<String, String> template;

    @Test
    void anInvoiceIsWrittenThoughTheLeaderMoves() throws Exception {
        minibroker.addFault("""
            {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "topic": "invoices", "times": 3}""");
        template.send("orders", "alice", "7 2");
        assertThat(first("invoices").value()).isEqualTo("total 14");
    }

    @Test
    void anOrderThatFailsThreeTimesIsSetAside() {
        template.send("orders", "bob", "no order");
        ConsumerRecord<String, String> dead = first("orders-dlt");
        assertThat(dead.value()).isEqualTo("no order");
        assertThat(dead.headers().lastHeader("kafka_dlt-exception-cause-fqcn").value())
            .asString().isEqualTo("java.lang.NumberFormatException");
    }

    /** Returns the first record of a topic, once it is there. */
    private ConsumerRecord<String, String> first(String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", minibroker.address(), "enable.auto.commit", false);
        var text = new StringDeserializer();
        template.setConsumerFactory(new DefaultKafkaConsumerFactory<>(settings, text, text));
        return template.receive(topic, 0, 0, TIMEOUT);
    }
}
