// Logins of Kafka's own client: java -cp 'classes:jars/*' SecuredClient < CASES
//
// The input is a list of cases in JSON, as tests/support/secured_clients.py writes it. Each case
// produces a record and reads it in a group. A line of JSON says what it read, or its error.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class SecuredClient {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String MODULES = "org.apache.kafka.common.security.";

    public static void main(String[] arguments) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        JsonNode cases = JSON.readTree(System.in);
        // Kafka 4 reads only what this property lists.
        System.setProperty(
            "org.apache.kafka.sasl.oauthbearer.allowed.urls", String.join(",", cases.findValuesAsText("token_url")));
        if (cases.at("/0/krb5_conf").isTextual()) {
            System.setProperty("java.security.krb5.conf", cases.at("/0/krb5_conf").asText());
        }
        for (JsonNode one : cases) threads.submit(() -> tell(one));
        threads.shutdown();
        threads.awaitTermination(5, TimeUnit.MINUTES);
        System.exit(0);
    }

    static void tell(JsonNode one) {
        Map<String, String> outcome;
        try {
            outcome = Map.of("read", writeAndRead(one));
        } catch (Throwable error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            outcome = Map.of("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
        synchronized (JSON) {
            System.out.println(JSON.valueToTree(Map.of("name", one.get("name"), "outcome", outcome)));
            System.out.flush();
        }
    }

    static String writeAndRead(JsonNode one) throws Exception {
        String topic = one.get("topic").asText();
        Properties settings = settings(one);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.send(new ProducerRecord<>(topic, one.get("name").asText())).get();
        }
        settings = settings(one);
        settings.put("group.id", topic);
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    return record.value();
                }
            }
        }
    }

    static Properties settings(JsonNode one) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", one.get("address").asText());
        settings.put("security.protocol", one.get("protocol").asText());
        if (one.has("ca")) {
            settings.put("ssl.truststore.type", "PEM");
            settings.put("ssl.truststore.location", one.get("ca").asText());
        }
        if (one.has("certificate")) {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.location", one.get("certificate").asText());
        }
        if (one.has("mechanism")) {
            settings.put("sasl.mechanism", one.get("mechanism").asText());
            settings.put("sasl.jaas.config", login(one));
        }
        if (one.has("keytab")) settings.put("sasl.kerberos.service.name", "kafka");
        if (one.has("token_url")) {
            settings.put("sasl.login.callback.handler.class", MODULES + "oauthbearer.OAuthBearerLoginCallbackHandler");
            settings.put("sasl.oauthbearer.token.endpoint.url", one.get("token_url").asText());
        }
        return settings;
    }

    static String login(JsonNode one) {
        String mechanism = one.get("mechanism").asText();
        if (mechanism.equals("GSSAPI")) {
            return "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab=\""
                + one.get("keytab").asText() + "\" principal=\"" + one.get("user").asText() + "@"
                + one.get("realm").asText() + "\";";
        }
        if (one.has("token_url")) return MODULES + "oauthbearer.OAuthBearerLoginModule required;";
        if (mechanism.equals("OAUTHBEARER")) {
            return MODULES + "oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\""
                + one.get("user").asText() + "\" unsecuredLoginStringClaim_scope=\"" + one.get("scope").asText() + "\";";
        }
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        return MODULES + module + " required username=\"" + one.get("user").asText()
            + "\" password=\"" + one.get("password").asText() + "\";";
    }
}
