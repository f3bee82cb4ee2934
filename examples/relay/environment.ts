import { createClient } from 'graphql-sse';
import {
  Environment,
  type FetchFunction,
  Network,
  Observable,
  RecordSource,
  type RequestParameters,
  Store,
  type SubscribeFunction,
} from 'relay-runtime';
import { authorization, endpoint } from '../shared/gateway.ts';

export function createRelay(url = endpoint): Environment {
  const send: FetchFunction = async (operation, variables, { metadata }) => {
    const headers = metadata?.['headers'] as Record<string, string> | undefined;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorization(), ...headers },
      body: JSON.stringify({ ...documentOf(operation), variables }),
    });
    return response.json();
  };
  const live = createClient({
    url,
    headers: authorization,
    retryAttempts: Number.POSITIVE_INFINITY,
  });
  const subscribe: SubscribeFunction = (operation, variables) =>
    Observable.create((sink) =>
      live.subscribe(
        { ...documentOf(operation), variables },
        sink as Parameters<typeof live.subscribe>[1],
      ),
    );
  return new Environment({
    network: Network.create(send, subscribe),
    store: new Store(new RecordSource()),
  });
}

/** There is an id instead of a text with "persistConfig". */
function documentOf({ id, text }: RequestParameters) {
  return id ? { query: '', documentId: id } : { query: text ?? '' };
}
