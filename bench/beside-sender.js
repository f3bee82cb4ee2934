// The thread of the sender that asks for most, from an address of its own.
import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { WebSocket } from 'ws';

const { kind, connections, port, outfits } = workerData;
const localAddress = '127.0.0.2';
const fields =
  'id databaseId title description imageKey imageOriginalUrl backgroundColor backgroundImage complete created creationDevice likes modificationDevice modified playVideo private quality user { id avatarKey username firstName lastName }';
const agent = new Agent({ keepAlive: true, maxSockets: connections, localAddress });
let asked = 0;
let answered = 0;
let bytes = 0;

/** Within all limits, and another text each time. */
const documentOf = () => {
  asked += 1;
  return `{ a${asked}: outfits(pageSize: ${outfits}, ordering: LIKE_COUNT_DESC) { count results { ${fields} user { outfits(pageSize: 10, ordering: MODIFIED_DESC) { count results { ${fields} } } } } } }`;
};

parentPort?.once('message', () => {
  parentPort?.postMessage(`${answered} answers of ${asked}, ${(bytes / 1e6).toFixed(0)} MB`);
  setTimeout(() => process.exit(), 10);
});

if (kind === 'socket') subscribe();
else for (let count = 0; count < connections; count++) askForever();

function subscribe() {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
    localAddress,
  });
  const send = (/** @type {object} */ message) => socket.send(JSON.stringify(message));
  socket.on('open', () => send({ type: 'connection_init' }));
  socket.on('message', (data) => {
    const text = String(data);
    bytes += text.length;
    if (text.includes('"next"')) answered += 1;
    if (!text.includes('connection_ack')) return;
    for (let id = 0; id < connections; id++) {
      send({
        id: String(id),
        type: 'subscribe',
        payload: { query: `subscription ${documentOf()}` },
      });
    }
  });
}

function askForever() {
  const headers = { 'content-type': 'application/json' };
  const options = { agent, headers, port, host: '127.0.0.1', path: '/graphql', method: 'POST' };
  const sent = request(options, (response) => {
    const isRefused = response.statusCode !== 200;
    response.on('data', (chunk) => {
      if (bytes === 0 && String(chunk).startsWith('{"errors'))
        parentPort?.postMessage(String(chunk).slice(0, 300));
      bytes += chunk.length;
    });
    response.on('close', () => {
      if (!isRefused) answered += 1;
      setTimeout(askForever, isRefused ? 50 : 0);
    });
  });
  sent.on('error', () => setTimeout(askForever, 50));
  sent.end(JSON.stringify({ query: documentOf() }));
}
