// Schemas of kafkajs: NODE_PATH=… node registry_client.js REGISTRY ADDRESS < CASES
//
// The input is a list of cases in JSON: {type, schema, subject, topic, value}. Each case registers its
// schema, writes a record of it and reads it. A line of JSON says the id and the value, or the error.

const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");
const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");

const [host, address] = process.argv.slice(2);

async function roundTrip(registry, kafka, scenario) {
  const { id } = await registry.register(
    { type: scenario.type, schema: scenario.schema },
    { subject: scenario.subject },
  );
  const value = await registry.encode(id, scenario.value);
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: scenario.topic, messages: [{ value }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: scenario.topic, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topics: [scenario.topic], fromBeginning: true });
  const bytes = await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value) });
  });
  await consumer.disconnect();
  // A reader of its own, so that the schema comes from the registry.
  const decoded = await new SchemaRegistry({ host }).decode(bytes);
  return { id, latest: await registry.getLatestSchemaId(scenario.subject), value: decoded };
}

async function main() {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING });
  const registry = new SchemaRegistry({ host });
  for (const scenario of JSON.parse(fs.readFileSync(0, "utf-8"))) {
    try {
      console.log(JSON.stringify(await roundTrip(registry, kafka, scenario)));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error) }));
    }
  }
}

main();
