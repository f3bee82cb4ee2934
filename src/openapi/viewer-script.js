// @ts-nocheck: it runs in browsers, whose types this project does not have.
// Part of the page at /api/docs, not of this process: starts Swagger UI, and mends what it shows.

/** Its source is the file page.js of the page: it may use nothing from outside of it. */
export function showDocument() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const setTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', setTheme);
  setTheme();

  const viewer = document.querySelector('#viewer');
  const nameOf = (select) =>
    select.closest('[data-param-name]')?.dataset.paramName ??
    (select.id === 'servers'
      ? 'Server'
      : `Example ${select.closest('[data-code]')?.dataset.code ?? 'of the body'}`);

  /** Parts beside its own `main`. */
  const regions = { '.information-container': 'About', '.scheme-container': 'Server and token' };

  /** What Swagger UI lacks for those who hear the page, or use it with the keyboard alone. */
  const mend = () => {
    for (const [part, label] of Object.entries(regions)) {
      const region = viewer.querySelector(`${part}:not([role])`);
      region?.setAttribute('role', 'region');
      region?.setAttribute('aria-label', label);
    }
    for (const close of viewer.querySelectorAll('.close-modal:not([aria-label])')) {
      close.setAttribute('aria-label', 'Close');
    }
    // Its name would be another than the word on it.
    for (const button of viewer.querySelectorAll('.modal-btn[aria-label]')) {
      button.removeAttribute('aria-label');
    }
    for (const select of viewer.querySelectorAll('select:not([aria-label], [id]), #servers')) {
      select.setAttribute('aria-label', nameOf(select));
    }
    // They are as long as their answers, and are scrolled.
    for (const text of viewer.querySelectorAll('pre.microlight:not([tabindex])')) text.tabIndex = 0;
    // A link in a button is neither. The button leads to the same place.
    for (const link of viewer.querySelectorAll('button a[href]')) link.removeAttribute('href');
    // Or else it is no table to them any more.
    for (const table of viewer.querySelectorAll('table[role]')) table.removeAttribute('role');
    // Its headings leave out the second level.
    for (const heading of viewer.querySelectorAll(':is(h3, h4, h5):not([aria-level])')) {
      heading.setAttribute('aria-level', String(Number(heading.localName.slice(1)) - 1));
    }
  };
  new MutationObserver(mend).observe(viewer, { childList: true, subtree: true });

  SwaggerUIBundle({
    url: 'openapi.json',
    domNode: viewer,
    deepLinking: true,
    displayRequestDuration: true,
    // Tokens stay in memory: what a browser keeps can be stolen from there.
    persistAuthorization: false,
    // The address in the document may be another one of this service, which this page may not ask.
    requestInterceptor: (request) => {
      const { pathname, search } = new URL(request.url, location.href);
      return { ...request, url: location.origin + pathname + search };
    },
    // It would show the document to another host.
    validatorUrl: null,
  });
}
