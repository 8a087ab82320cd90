// Logins of kafkajs: NODE_PATH=… node secured_client.js < CASES
//
// The input is a list of cases in JSON, as tests/support/secured_clients.py writes it. Each case
// produces a record and reads it in a group. A line of JSON says what it read, or its error.

const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");

function settingsOf(one) {
  const settings = { brokers: [one.address], logLevel: logLevel.NOTHING };
  if (one.ca) {
    settings.ssl = { ca: [fs.readFileSync(one.ca, "utf-8")] };
  }
  if (one.certificate) {
    const pem = fs.readFileSync(one.certificate, "utf-8");
    Object.assign(settings.ssl, { key: pem, cert: pem });
  }
  if (one.mechanism) {
    settings.sasl = { mechanism: one.mechanism.toLowerCase(), username: one.user, password: one.password };
  }
  if (one.token) {
    settings.sasl.oauthBearerProvider = async () => ({ value: one.token });
  }
  return settings;
}

async function writeAndRead(one) {
  const client = new Kafka({ ...settingsOf(one), retry: { retries: 3 } });
  const producer = client.producer();
  try {
    await producer.connect();
    await producer.send({ topic: one.topic, messages: [{ value: one.name }] });
  } finally {
    await producer.disconnect();
  }
  const consumer = client.consumer({ groupId: one.topic, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topics: [one.topic], fromBeginning: true });
  const value = await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) }).catch(reject);
  });
  await consumer.disconnect();
  return value;
}

async function tell(one) {
  const outcome = await writeAndRead(one).then(
    (read) => ({ read }),
    (error) => ({ error: `${error.name}: ${error.message}` }),
  );
  console.log(JSON.stringify({ name: one.name, outcome }));
}

Promise.all(JSON.parse(fs.readFileSync(0, "utf-8")).map(tell));
