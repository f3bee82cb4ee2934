// A small server that gives signed-in people an address to which one file may be sent: a presigned PUT of S3, or of
// what speaks its protocol. The file goes from the browser to the store, and its key to `createOutfit`.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { AwsClient } from 'aws4fetch';

const {
  PORT = '5174',
  ORIGIN = 'http://localhost:5173',
  GATEWAY = 'http://localhost:4000',
  /** The bucket that MEDIA_URL serves, such as https://outfits.s3.eu-central-1.amazonaws.com. */
  BUCKET = '',
  AWS_ACCESS_KEY_ID = '',
  AWS_SECRET_ACCESS_KEY = '',
} = process.env;

const store = new AwsClient({
  accessKeyId: AWS_ACCESS_KEY_ID,
  secretAccessKey: AWS_SECRET_ACCESS_KEY,
  service: 's3',
});
const endings = new Map([
  ['image/jpeg', 'jpeg'],
  ['image/png', 'png'],
]);

/** Whose token it is: the gateway knows. */
async function findViewer(authorization = '') {
  const answer = await fetch(`${GATEWAY}/graphql`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ viewer { user { databaseId } } }' }),
  });
  return (await answer.json()).data?.viewer?.user;
}

async function answer(request) {
  if (request.method !== 'POST' || request.url !== '/uploads') return [404, 'Not found.'];
  let body = '';
  for await (const chunk of request) {
    body += chunk;
    if (body.length > 1000) return [413, 'Too large.'];
  }
  const { type } = JSON.parse(body);
  const ending = endings.get(type);
  if (!ending) return [415, 'Only JPEG and PNG.'];
  if (!(await findViewer(request.headers.authorization))) return [401, 'Sign in first.'];
  const key = `outfits/${randomUUID()}.${ending}`;
  const address = new URL(`${BUCKET}/${key}`);
  address.searchParams.set('X-Amz-Expires', '300');
  const { url } = await store.sign(address, {
    method: 'PUT',
    // The type is signed too: the store takes no other.
    headers: { 'content-type': type },
    aws: { signQuery: true, allHeaders: true },
  });
  return [200, JSON.stringify({ key, url })];
}

const server = createServer(async (request, response) => {
  response.setHeader('access-control-allow-origin', ORIGIN);
  if (request.method === 'OPTIONS') {
    response.setHeader('access-control-allow-headers', 'authorization, content-type');
    response.writeHead(204).end();
    return;
  }
  const [status, text] = await answer(request).catch(() => [400, 'The request is not valid.']);
  response.writeHead(status, { 'content-type': 'application/json' }).end(text);
});
server.listen(Number(PORT), () => {
  console.log(`Addresses for files: http://localhost:${server.address().port}/uploads`);
});
