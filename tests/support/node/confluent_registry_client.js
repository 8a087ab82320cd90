// Confluent's own client of schema registries: NODE_PATH=… node confluent_registry_client.js URL < RECORDS
//
// Writes a line "record TOPIC BASE64" for a value of each format, reads the record in base64 from the next
// line of the input, and writes what it decodes as JSON. Then it writes the subjects as JSON.

const readline = require("readline");
const { create, createMutableRegistry } = require("@bufbuild/protobuf");
const { TimestampSchema } = require("@bufbuild/protobuf/wkt");
const serdes = require("@confluentinc/schemaregistry");

const ORDER = {
  type: "record",
  name: "Order",
  namespace: "shop",
  fields: [{ name: "id", type: "long" }],
};
const ORDER_JSON = {
  type: "object",
  properties: { id: { type: "integer" } },
  required: ["id"],
  additionalProperties: false,
};

const url = process.argv[2];
const input = readline.createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();

function newClient() {
  return new serdes.SchemaRegistryClient({ baseURLs: [url] });
}

async function roundTrip(topic, serializer, deserializer, value) {
  const bytes = await serializer.serialize(topic, value);
  console.log(`record ${topic} ${bytes.toString("base64")}`);
  const { value: line } = await lines.next();
  const decoded = await deserializer.deserialize(topic, Buffer.from(line, "base64"));
  console.log(JSON.stringify(decoded, (_, part) => (typeof part === "bigint" ? Number(part) : part)));
}

async function main() {
  const [writer, reader] = [newClient(), newClient()];
  const { VALUE } = serdes.SerdeType;
  const schemas = { "js-avro": ["AVRO", ORDER], "js-json": ["JSON", ORDER_JSON] };
  for (const [topic, [schemaType, schema]] of Object.entries(schemas)) {
    await writer.register(`${topic}-value`, { schemaType, schema: JSON.stringify(schema) });
  }
  const latest = { useLatestVersion: true };
  await roundTrip(
    "js-avro",
    new serdes.AvroSerializer(writer, VALUE, latest),
    new serdes.AvroDeserializer(reader, VALUE, {}),
    { id: 7 },
  );
  await roundTrip(
    "js-json",
    new serdes.JsonSerializer(writer, VALUE, { ...latest, validate: true }),
    new serdes.JsonDeserializer(reader, VALUE, { validate: true }),
    { id: 7 },
  );
  const registry = createMutableRegistry(TimestampSchema);
  await roundTrip(
    "js-protobuf",
    new serdes.ProtobufSerializer(writer, VALUE, { registry, autoRegisterSchemas: true }),
    new serdes.ProtobufDeserializer(reader, VALUE, {}),
    create(TimestampSchema, { seconds: 7n }),
  );
  console.log(JSON.stringify(await reader.getAllSubjects()));
  input.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
