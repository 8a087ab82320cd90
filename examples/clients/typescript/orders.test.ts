import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import createClient from 'openapi-fetch'
import type { paths } from './control.js'

// The generated types of the control API, on a minibroker of its own.
test('the generated client', async t => {
  const ready = mkdtempSync('minibroker-') + '/ready'
  const broker = spawn('minibroker', ['serve', '--memory', '--topic', 'orders',
    '--listen', '127.0.0.1:0', '--control', '127.0.0.1:0', '--ready-file', ready])
  t.after(() => broker.kill())
  while (!existsSync(ready)) await setTimeout(5)
  const [, url] = readFileSync(ready, 'utf8').match(/(?<= on ).+/g)!
  const control = createClient<paths>({ baseUrl: url })

  const orders = { params: { path: { topic: 'orders' } } }
  const written = await control.POST('/topics/{topic}/records', {
    ...orders,
    body: { records: [{ key: 'o-1', value: { amount: 12 }, headers: [['source', 'web']] }, { key: 'o-1', value: null }] },
  })
  assert.deepStrictEqual(written.data?.records.map(record => record.offset), [0, 1])
  const read = await control.GET('/topics/{topic}/records', {
    params: { ...orders.params, query: { format: 'json', at_least: 2, wait_ms: 10_000 } },
  })
  assert.deepStrictEqual(read.data?.records.map(record => record.value), [{ amount: 12 }, null])

  const rule = { api: 'Produce', error: 'NOT_LEADER_OR_FOLLOWER', times: 2 }
  const { data: fault } = await control.POST('/faults', { body: rule })
  assert.strictEqual(fault?.times, 2)
  const removed = await control.DELETE('/faults/{id}', { params: { path: { id: fault.id } } })
  assert.strictEqual(removed.data?.hits, 0)

  const waited = await control.GET('/groups/{group}/ready', {
    params: { path: { group: 'billing' }, query: { members: 2, timeout_ms: 0 } },
  })
  assert.strictEqual(waited.response.status, 504)
  assert.match(waited.error!.error, /there is no such group/)
})
