// One member of a classic group with kafkajs: NODE_PATH=… node group_member.js ADDRESS GROUP TOPIC
//
// Prints "has 0 1" when its partitions changed and "read VALUE" per record; offsets are committed
// after every batch. SIGTERM leaves the group.

const { Kafka, logLevel } = require("kafkajs");

async function main(address, groupId, topic) {
  const client = new Kafka({ brokers: [address], logLevel: logLevel.WARN });
  const consumer = client.consumer({
    groupId,
    sessionTimeout: 5000,
    rebalanceTimeout: 10000,
    heartbeatInterval: 200,
    maxWaitTimeInMs: 200,
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = payload.memberAssignment[topic] || [];
    console.log(["has", ...partitions.sort((one, other) => one - other)].join(" "));
  });
  consumer.on(consumer.events.REBALANCING, () => console.log("has"));
  process.on("SIGTERM", async () => {
    await consumer.disconnect();
    process.exit(0);
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => console.log(`read ${message.value.toString()}`),
  });
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
