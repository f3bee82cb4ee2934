// @ts-nocheck: this file runs in browsers, whose types this project does not have.
/** @jsxImportSource react */
// GraphiQL in the browser: the npm package with examples, links to share, and the cost of answers.
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { useEditorContext, useSchemaStore } from '@graphiql/react';
import { GraphiQL } from 'graphiql';
import { getOperationAST } from 'graphql';
import { createClient } from 'graphql-sse';
import { useEffect, useState } from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { examples } from './examples.ts';
import 'graphiql/style.css';
import '@graphiql/plugin-explorer/style.css';

const url = location.pathname;
const plugins = [explorerPlugin()];
const shared = new URLSearchParams(location.hash.slice(1) || location.search);

/** Keeps the address a link to the content of the editors, without the headers. */
function showLink({ tabs, activeTabIndex }) {
  const { query, variables, operationName } = tabs[activeTabIndex];
  const given = Object.entries({ query, variables, operationName }).filter(([, text]) => text);
  const text = new URLSearchParams(given).toString();
  // Servers refuse long addresses; the fragment is not sent.
  const mark = text.length > 4000 ? '#' : '?';
  history.replaceState(null, '', url + (text && mark + text));
}

// The history contains headers with tokens, which are not stored.
const { setItem } = Storage.prototype;
Storage.prototype.setItem = function (key, text) {
  const drop = (name, value) => (name === 'headers' ? undefined : value);
  const isHistory = /:(queries|favorites)$/.test(key);
  setItem.call(this, key, isHistory ? JSON.stringify(JSON.parse(text), drop) : text);
};

/** The first visit shows the documentation. */
const panelKey = 'graphiql:visiblePlugin';
const firstPanel =
  localStorage.getItem(panelKey) ?? (innerWidth > 1000 ? 'Documentation Explorer' : '');
const keepPanel = (plugin) => localStorage.setItem(panelKey, plugin?.title ?? '');

/** @param showStatus called with status, size and duration of each answer */
const createFetcher = (showStatus) => {
  const ask = async (address, options) => {
    showStatus('');
    const begun = performance.now();
    const headers = { ...options.headers, 'GraphQL-Cost': '1' };
    const response = await fetch(address, { ...options, headers });
    // A cancelled answer has no size.
    describeAnswer(response.clone(), begun).then(showStatus, () => {});
    return response;
  };
  return async (question, { headers, documentAST } = {}) => {
    const { operationName } = question;
    const operation = documentAST && getOperationAST(documentAST, operationName);
    if (operation?.operation === 'subscription') {
      return createClient({ url, headers, fetchFn: ask, retryAttempts: 0 }).iterate(question);
    }
    const send = operationName === 'IntrospectionQuery' ? fetch : ask;
    const response = await send(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(question),
    });
    return response.json();
  };
};

async function describeAnswer(response, begun) {
  const parts = [`${response.status} ${response.statusText}`.trim()];
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    await response.body.cancel();
    parts.push('live');
  } else {
    const { size } = await response.blob();
    parts.push(`${Math.round(performance.now() - begun)} ms`);
    parts.push(size < 1000 ? `${size} bytes` : `${(size / 1000).toFixed(1)} KB`);
  }
  const cost = response.headers.get('graphql-cost');
  if (cost) parts.push(`cost ${cost.replace(';max=', ' of ')}`);
  return parts.join(' · ');
}

function Bar({ status }) {
  const { addTab, headerEditor, queryEditor, setOperationName, variableEditor } =
    useEditorContext();
  const { schema } = useSchemaStore();

  useEffect(() => {
    if (!queryEditor) return;
    // The property visiblePlugin fills the panel, but leaves it hidden.
    document.querySelector(`[aria-label="Show ${firstPanel}"]`)?.click();
    // Ctrl-Enter runs the operation at the cursor: after opening a link, the one that it names.
    const name = shared.get('operationName')?.replace(/\W/g, '');
    const start = queryEditor.getValue().search(`(query|mutation|subscription)\\s+${name}\\b`);
    if (start === -1) return;
    queryEditor.setCursor(queryEditor.posFromIndex(start));
    setOperationName(name);
  }, [queryEditor]);

  const openExample = ({ target: { value: query } }) => {
    // A new tab has no headers, but a signed-in user stays signed in.
    const headers = headerEditor.getValue();
    flushSync(addTab);
    headerEditor.setValue(headers);
    variableEditor.setValue('');
    queryEditor.setValue(query);
  };
  return (
    <>
      <select
        aria-label="Examples"
        id="gateway-examples"
        value=""
        disabled={!queryEditor}
        onChange={openExample}
      >
        <option value="">Examples…</option>
        {examples.map(({ query }) => (
          <option key={query} value={query}>
            {/^(?:query|mutation|subscription) (\w+)/m.exec(query)[1]}
          </option>
        ))}
      </select>
      {schema && (
        <a id="gateway-schema" href={`${url}/schema.graphql`} download="schema.graphql">
          Download schema
        </a>
      )}
      <output id="gateway-status" title="cost: the objects that this may give, of the most allowed">
        {status}
      </output>
    </>
  );
}

/** Accessibility that GraphiQL lacks (WCAG): attributes by selector; null removes one. */
const amendments = [
  ['.graphiql-query-editor textarea', 'aria-label', 'Query'],
  ['.graphiql-editor-tool > :nth-child(1) textarea', 'aria-label', 'Variables'],
  ['.graphiql-editor-tool > :nth-child(2) textarea', 'aria-label', 'Headers'],
  ['.result-window textarea', 'aria-label', 'Answer'],
  ['.graphiql-explorer-root select', 'aria-label', 'Value'],
  ['.graphiql-history-item-label', 'aria-label', null],
  ['.CodeMirror-scroll', 'tabindex', 0],
  ['#graphiql-session', 'role', 'region'],
  // A tab must not contain a second button, such as the one that closes it.
  ['.graphiql-tabs, .graphiql-tab', 'role', null],
  ['.graphiql-tab', 'aria-selected', null],
  ['.graphiql-tab > .graphiql-tab-button', 'aria-current', false],
  ['.graphiql-tab-active > .graphiql-tab-button', 'aria-current', true],
];
const amend = () => {
  for (const [selector, name, value] of amendments) {
    for (const element of document.querySelectorAll(selector)) {
      if (value === null) element.removeAttribute(name);
      else element.setAttribute(name, value);
    }
  }
};
const attributeFilter = ['class', 'aria-selected'];
new MutationObserver(amend).observe(document, { childList: true, subtree: true, attributeFilter });

function Page() {
  const [status, setStatus] = useState('');
  const [fetcher] = useState(() => createFetcher(setStatus));
  const query = shared.get('query') ?? undefined;
  return (
    <GraphiQL
      {...{ fetcher, plugins, query }}
      variables={shared.get('variables') ?? undefined}
      defaultQuery=""
      defaultTabs={query ? undefined : examples.slice(0, 1)}
      defaultEditorToolsVisibility={innerWidth > 700}
      schemaDescription
      shouldPersistHeaders={false}
      onTogglePluginVisibility={keepPanel}
      onTabChange={showLink}
    >
      <GraphiQL.Footer>
        <Bar status={status} />
      </GraphiQL.Footer>
    </GraphiQL>
  );
}

createRoot(document.querySelector('#root')).render(<Page />);
