// @ts-nocheck: this file runs in browsers, whose types this project does not have.
/** @jsxImportSource react */
// GraphiQL in the browser: the npm package with examples, a token, links to share, and the cost of answers.
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { useEditorContext, useExecutionContext } from '@graphiql/react';
import { GraphiQL } from 'graphiql';
import { getOperationAST } from 'graphql';
import { createClient } from 'graphql-sse';
import { useState } from 'react';
import { createPortal, flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { examples } from './examples.ts';
import 'graphiql/style.css';
import '@graphiql/plugin-explorer/style.css';

const url = location.pathname;
const plugins = [explorerPlugin()];
const shared = new URLSearchParams(location.hash.slice(1) || location.search);

/** Kept nowhere else, so it is gone with the page. */
let token = '';

/** Keeps the address a link to the content of the editors. */
function showLink({ tabs, activeTabIndex }) {
  const { query, variables } = tabs[activeTabIndex];
  const given = Object.entries({ query, variables }).filter(([, text]) => text);
  const text = new URLSearchParams(given).toString();
  // Servers refuse long addresses; the fragment is not sent.
  const mark = text.length > 4000 ? '#' : '?';
  history.replaceState(null, '', url + (text && mark + text));
}

/** @param showStatus called with status, duration and cost of each answer */
const createFetcher = (showStatus) => {
  const send = async (address, options) => {
    const begun = performance.now();
    const headers = { ...options.headers, 'GraphQL-Cost': '1' };
    // A credential of another scheme is given with its name.
    if (token) headers.Authorization = /\s/.test(token) ? token : `Bearer ${token}`;
    const response = await fetch(address, { ...options, headers });
    const cost = response.headers.get('graphql-cost')?.replace(';max=', ' of ');
    const duration = `${Math.round(performance.now() - begun)} ms`;
    showStatus(`${response.status} · ${duration}${cost ? ` · cost ${cost}` : ''}`);
    return response;
  };
  return async (request, { documentAST } = {}) => {
    const operation = documentAST && getOperationAST(documentAST, request.operationName);
    if (operation?.operation === 'subscription') {
      return createClient({ url, fetchFn: send, retryAttempts: 0 }).iterate(request);
    }
    const headers = { 'Content-Type': 'application/json' };
    const response = await send(url, { method: 'POST', headers, body: JSON.stringify(request) });
    return response.json();
  };
};

/** In the header of the page, above the editors. */
function Tools({ showStatus }) {
  const { addTab, queryEditor, variableEditor } = useEditorContext();
  const { stop } = useExecutionContext();
  const openExample = (query) => {
    // The answers of a subscription would be shown in the new tab.
    stop();
    showStatus('');
    flushSync(addTab);
    variableEditor?.setValue('');
    queryEditor.setValue(query);
  };
  return createPortal(
    <>
      <fieldset>
        <legend>Examples</legend>
        {examples.map(({ query }) => (
          <button
            key={query}
            type="button"
            disabled={!queryEditor}
            onClick={() => openExample(query)}
          >
            {/^(?:query|mutation|subscription) (\w+)/m.exec(query)[1]}
          </button>
        ))}
      </fieldset>
      <label>
        Token{' '}
        <input
          type="password"
          autoComplete="off"
          onChange={({ target }) => {
            token = target.value.trim();
          }}
        />
      </label>
    </>,
    document.querySelector('#tools'),
  );
}

/** Accessibility that GraphiQL lacks (WCAG): attributes by selector; null removes one. */
const amendments = [
  ['.graphiql-query-editor textarea', 'aria-label', 'Query'],
  ['.graphiql-editor-tool textarea', 'aria-label', 'Variables'],
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
      isHeadersEditorEnabled={false}
      schemaDescription
      onTabChange={showLink}
    >
      <GraphiQL.Footer>
        <Tools showStatus={setStatus} />
        <output title="cost: the objects that this may give, of the most allowed">{status}</output>
      </GraphiQL.Footer>
    </GraphiQL>
  );
}

createRoot(document.querySelector('#root')).render(<Page />);
