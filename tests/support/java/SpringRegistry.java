import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.springframework.cache.support.NoOpCacheManager;
import org.springframework.cloud.stream.schema.registry.SchemaReference;
import org.springframework.cloud.stream.schema.registry.SchemaRegistrationResponse;
import org.springframework.cloud.stream.schema.registry.avro.AvroSchemaRegistryClientMessageConverter;
import org.springframework.cloud.stream.schema.registry.avro.AvroSchemaServiceManagerImpl;
import org.springframework.cloud.stream.schema.registry.avro.DefaultSubjectNamingStrategy;
import org.springframework.cloud.stream.schema.registry.client.ConfluentSchemaRegistryClient;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.util.MimeType;

/**
 * Spring Cloud Stream with a schema registry: URL and a schema. Registers the schema, prints its id
 * and version, the texts behind both, and a record in base64. Reads a record in base64 from the next
 * line of the input, and prints its id.
 */
public class SpringRegistry {
  public static void main(String[] arguments) throws Exception {
    ConfluentSchemaRegistryClient client = new ConfluentSchemaRegistryClient();
    client.setEndpoint(arguments[0]);
    Schema schema = new Schema.Parser().parse(arguments[1]);
    SchemaRegistrationResponse answer = client.register("order", "avro", schema.toString());
    SchemaReference reference = answer.getSchemaReference();
    System.out.println(answer.getId());
    System.out.println(reference.getVersion());
    System.out.println(client.fetch(answer.getId()));
    System.out.println(client.fetch(reference));

    GenericRecord order = new GenericData.Record(schema);
    order.put("id", 7L);
    MimeType avro = MimeType.valueOf("application/*+avro");
    Message<?> message =
        converter(client).toMessage(order, new MessageHeaders(Map.of("contentType", avro)), null);
    System.out.println(message.getHeaders().get("contentType"));
    byte[] payload = (byte[]) message.getPayload();
    System.out.println("record spring " + Base64.getEncoder().encodeToString(payload));

    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Message<byte[]> back =
        MessageBuilder.withPayload(Base64.getDecoder().decode(input.readLine()))
            .setHeader("contentType", message.getHeaders().get("contentType"))
            .build();
    System.out.println(
        ((GenericRecord) converter(client).fromMessage(back, GenericRecord.class)).get("id"));
  }

  private static AvroSchemaRegistryClientMessageConverter converter(
      ConfluentSchemaRegistryClient client) throws Exception {
    AvroSchemaRegistryClientMessageConverter converter =
        new AvroSchemaRegistryClientMessageConverter(
            client, new NoOpCacheManager(), new AvroSchemaServiceManagerImpl());
    converter.setSubjectNamingStrategy(new DefaultSubjectNamingStrategy());
    converter.setDynamicSchemaGenerationEnabled(true);
    converter.afterPropertiesSet();
    return converter;
  }
}
