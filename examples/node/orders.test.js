const assert = require('node:assert')
const { spawn } = require('node:child_process')
const { existsSync, mkdtempSync, readFileSync } = require('node:fs')
const { test } = require('node:test')
const { setTimeout } = require('node:timers/promises')
const { Kafka, logLevel } = require('kafkajs')

// The protocol in Node: start minibroker, wait for its ready file, make a client's request fail.
test('a record is written though the leader moves', async t => {
  const ready = mkdtempSync('minibroker-') + '/ready'
  const broker = spawn('minibroker', ['serve', '--memory', '--topic', 'orders',
    '--listen', '127.0.0.1:0', '--control', '127.0.0.1:0', '--ready-file', ready])
  t.after(() => broker.kill())
  while (!existsSync(ready)) await setTimeout(5)
  const [address, control] = readFileSync(ready, 'utf8').match(/(?<= on ).+/g)

  const fault = { api: 'Produce', error: 'NOT_LEADER_OR_FOLLOWER', times: 2 }
  const answer = await fetch(control + '/faults', { method: 'POST', body: JSON.stringify(fault) })
  assert.strictEqual(answer.status, 201)
  const producer = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).producer()
  await producer.connect()
  const [first] = await producer.send({ topic: 'orders', messages: [{ value: 'first' }] })
  await producer.disconnect()
  assert.strictEqual(first.baseOffset, '0')
})
