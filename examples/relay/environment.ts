import { createClient } from 'graphql-sse';
import {
  Environment,
  type FetchFunction,
  Network,
  Observable,
  RecordSource,
  Store,
  type SubscribeFunction,
} from 'relay-runtime';
import { authorization, endpoint } from '../shared/gateway.ts';

export function createRelay(url = endpoint): Environment {
  const send: FetchFunction = async ({ id, text }, variables, { metadata }) => {
    const headers = metadata?.['headers'] as Record<string, string> | undefined;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization(), ...headers },
      // There is an id instead of a text with "persistConfig".
      body: JSON.stringify(id ? { documentId: id, variables } : { query: text, variables }),
    });
    return response.json();
  };
  const live = createClient({
    url,
    headers: authorization,
    retryAttempts: Number.POSITIVE_INFINITY,
  });
  const subscribe: SubscribeFunction = ({ text }, variables) =>
    Observable.create((sink) =>
      live.subscribe(
        { query: text ?? '', variables },
        sink as Parameters<typeof live.subscribe>[1],
      ),
    );
  return new Environment({
    network: Network.create(send, subscribe),
    store: new Store(new RecordSource()),
  });
}
