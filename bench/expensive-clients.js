// The thread of the twenty clients of expensive lists.
import { Agent, request } from 'node:http';
import { workerData } from 'node:worker_threads';

const clients = 20;
const { port, query } = workerData;
const body = JSON.stringify({ query });
const agent = new Agent({ keepAlive: true, maxSockets: clients });
const headers = { 'content-type': 'application/json' };
const options = { agent, headers, port, host: '127.0.0.1', path: '/graphql', method: 'POST' };

await Promise.all(Array.from({ length: clients }, askForever));

async function askForever() {
  for (;;) await askOnce();
}

function askOnce() {
  return new Promise((settle) => {
    const sent = request(options, (answer) => answer.resume().on('close', settle));
    sent.on('error', settle);
    sent.end(body);
  });
}
