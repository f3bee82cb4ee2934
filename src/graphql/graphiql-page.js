// @ts-nocheck: it runs in browsers, whose types this project does not have.
// Part of the page of GraphiQL, not of this process: links to share, examples, the time and cost of answers.

/**
 * Its source stands in the page, before GraphiQL's own: it may use nothing from outside of it.
 * @returns further options for GraphiQL
 */
export function preparePage({ examples, hasSchema, headersHint }) {
  /** Links longer than this would not pass all servers: then all is behind the #, which is sent to none. */
  const longestQueryString = 4000;

  const shared = new URLSearchParams(location.hash.slice(1) || location.search);

  const isWide = innerWidth > 1000;
  const panelKey = 'graphiql:visiblePlugin';
  /** On the first visit, the documentation is open: it says where to start. */
  const firstOf = (key) => (isWide && key === panelKey ? 'Documentation Explorer' : null);
  /** The browser's own storage, but for headers in the history: they hold tokens. */
  const storage = {
    getItem: (key) => localStorage.getItem(key) ?? firstOf(key),
    setItem: (key, value) =>
      localStorage.setItem(key, isHistory(key) ? withoutHeaders(value) : value),
    // Whoever has closed the panel has made a choice: there is no first visit any more.
    removeItem: (key) =>
      key === panelKey ? localStorage.setItem(key, '') : localStorage.removeItem(key),
    clear: () => localStorage.clear(),
    get length() {
      return localStorage.length;
    },
  };
  const isHistory = (key) => /:(queries|favorites)$/.test(key);
  const withoutHeaders = (text) =>
    JSON.stringify(JSON.parse(text), (name, value) => (name === 'headers' ? undefined : value));

  /** GraphiQL takes the operation of a document from a tab that it has kept, and from nowhere else. */
  const keepSharedTab = () => {
    const [query, operationName] = [shared.get('query'), shared.get('operationName')];
    if (!query || !operationName) return;
    const key = 'graphiql:tabState';
    const { tabs = [] } = JSON.parse(storage.getItem(key) ?? '{}');
    const variables = shared.get('variables');
    const others = tabs.filter((tab) => tab.query !== query || tab.variables !== variables);
    const tab = { id: crypto.randomUUID?.() ?? String(Math.random()), title: operationName };
    Object.assign(tab, { query, variables, headers: null, operationName, response: null });
    const state = { tabs: [...others, tab], activeTabIndex: others.length };
    storage.setItem(key, JSON.stringify(state));
  };
  try {
    keepSharedTab();
  } catch {
    // Without storage, or with one that nobody can read, the first operation is chosen.
  }

  /** Ctrl-Enter asks the operation that the cursor is in: with a link, that is the one that it names. */
  const pointAtShared = (editor) => {
    const model = editor.getModel();
    if (!model?.uri.path.endsWith('operation.graphql')) return;
    const name = shared.get('operationName');
    if (!/^\w+$/.test(name ?? '') || model.getValue() !== shared.get('query')) return;
    const pattern = `\\b(query|mutation|subscription)\\s+${name}\\b`;
    const [match] = model.findMatches(pattern, true, true, true, null, false, 1);
    if (!match) return;
    editor.setPosition(match.range.getEndPosition());
    editor.revealPositionInCenterIfOutsideViewport(match.range.getEndPosition());
  };
  /** Called by the page as soon as it has its editor. */
  globalThis.gatewayEditors = ({ editor }) =>
    editor.onDidCreateEditor((one) => one.onDidChangeModel(() => pointAtShared(one)));

  /** The address is always a link to what is in the editors; headers are not in it. */
  const showLink = ({ tabs, activeTabIndex }) => {
    const { query, variables, operationName } = tabs[activeTabIndex];
    const parameters = new URLSearchParams();
    if (query) parameters.set('query', query);
    if (variables?.trim()) parameters.set('variables', variables);
    if (operationName) parameters.set('operationName', operationName);
    const text = parameters.toString();
    const mark = text.length > longestQueryString ? '#' : '?';
    history.replaceState(null, '', location.pathname + (text && mark + text));
  };

  const options = {
    storage,
    defaultHeaders: headersHint,
    defaultEditorToolsVisibility: innerWidth > 700,
    onTabChange: showLink,
    // Or else the bundle writes a link of its own, without variables.
    onEditQuery() {},
    ...(shared.get('query') ? { query: shared.get('query') } : {}),
    ...(shared.get('variables') ? { variables: shared.get('variables') } : {}),
  };

  const add = (parent, name, properties) =>
    parent.appendChild(Object.assign(document.createElement(name), properties));

  const bar = add(document.body, 'footer', { className: 'gateway-bar' });
  const menu = add(bar, 'select', { id: 'gateway-examples', ariaLabel: 'Examples' });
  add(menu, 'option', { textContent: 'Examples…', value: '' });
  for (const [index, { name }] of examples.entries()) {
    add(menu, 'option', { textContent: name, value: String(index) });
  }
  const share = add(bar, 'button', {
    id: 'gateway-share',
    type: 'button',
    textContent: 'Copy link',
  });
  if (hasSchema) {
    const href = `${location.pathname.replace(/\/$/, '')}/schema.graphql`;
    add(bar, 'a', {
      id: 'gateway-schema',
      href,
      download: 'schema.graphql',
      textContent: 'Download schema',
    });
  }
  const status = add(bar, 'output', {
    id: 'gateway-status',
    title: 'cost: the objects that this question may give, and the most that are allowed',
  });

  /** What is in one of GraphiQL's four editors. */
  const modelOf = (end) =>
    globalThis.__MONACO.editor.getModels().find(({ uri }) => uri.path.endsWith(end));

  const fill = (end, text) => {
    const model = modelOf(end);
    model.setValue(text);
    // From the start, wherever the cursor was in the text before.
    const editor = globalThis.__MONACO.editor.getEditors().find((one) => one.getModel() === model);
    editor?.setPosition({ lineNumber: 1, column: 1 });
    editor?.setScrollPosition({ scrollLeft: 0, scrollTop: 0 });
  };

  menu.addEventListener('change', () => {
    const example = examples[menu.value];
    menu.value = '';
    if (!example) return;
    // A tab begins without the headers of others, but whoever is signed in wants to stay so.
    const headers = modelOf('request-headers.json').getValue();
    document.querySelector('.graphiql-tab-add').click();
    const { query, variables } = example;
    fill('request-headers.json', headers);
    fill('variables.json', variables ? JSON.stringify(variables, null, 2) : '');
    fill('operation.graphql', query);
  });

  share.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      share.textContent = 'Link copied';
      setTimeout(() => {
        share.textContent = 'Copy link';
      }, 2000);
    } catch {
      // Only pages of https and of this machine may write to the clipboard.
      prompt('The link:', location.href);
    }
  });

  // Of subscriptions it is a GET.
  const isAsked = (url) => new URL(url, location.href).pathname === location.pathname;
  const isIntrospection = (options) =>
    /"query":"query IntrospectionQuery\b/.test(String(options?.body));

  const ask = globalThis.fetch;
  globalThis.fetch = async (url, options) => {
    if (!isAsked(url) || isIntrospection(options)) return ask(url, options);
    const headers = new Headers(options?.headers);
    headers.set('GraphQL-Cost', '1');
    const begun = performance.now();
    status.textContent = 'Asking…';
    try {
      const response = await ask(url, { ...options, headers });
      // An answer that is stopped halfway has no size.
      tellAnswer(response, begun).catch(() => {});
      return response;
    } catch (error) {
      status.textContent = error?.name === 'AbortError' ? 'Stopped' : 'No answer';
      throw error;
    }
  };

  const tellAnswer = async (response, begun) => {
    const parts = [`${response.status} ${response.statusText}`.trim()];
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
      parts.push('live');
    } else {
      const { byteLength } = await response.clone().arrayBuffer();
      parts.push(`${Math.round(performance.now() - begun)} ms`);
      parts.push(
        byteLength < 1000 ? `${byteLength} bytes` : `${(byteLength / 1000).toFixed(1)} KB`,
      );
    }
    const [, cost, most] = /^(\d+);max=(\d+)$/.exec(response.headers.get('graphql-cost')) ?? [];
    if (cost) parts.push(`cost ${cost} of ${most}`);
    status.textContent = parts.join(' · ');
  };

  return options;
}
