// The table of who calls what, as a page for people: no script, nothing from elsewhere.
import { createHash } from 'node:crypto';
import type { UsageReport, UsageRow } from './usage.ts';

const style = `
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1f; --soft: #55555f; --line: #c9c9d1; --warn: #9a3412 }
@media (prefers-color-scheme: dark) {
  :root { --back: #16171b; --text: #e9e9ee; --soft: #b0b1bb; --line: #44464f; --warn: #fdba74 }
}
body { margin: 1.5rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif }
h1 { margin: 0; font-size: 1.5rem }
p { max-width: 45rem; color: var(--soft) }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
caption { text-align: start; font-weight: 600 }
th, td { padding: .375rem .75rem; border-bottom: 1px solid var(--line); text-align: start; vertical-align: top; overflow-wrap: anywhere; min-width: 6rem }
thead th { color: var(--soft); font-weight: 600 }
td.number, th.number { text-align: end; white-space: nowrap; min-width: 0 }
ul { margin: 0; padding: 0; list-style: none }
.unknown { color: var(--warn); font-weight: 600 }
@media (max-width: 60rem) {
  body { margin: 1rem }
  table, caption, tbody, tr, th[scope=row], td { display: block }
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden }
  tr { padding: .75rem 0; border-bottom: 1px solid var(--line) }
  th[scope=row], td { padding: .125rem 0; border: 0; min-width: 0 }
  td { display: grid; grid-template-columns: 9rem minmax(0, 1fr) }
  td::before { content: attr(data-label); color: var(--soft) }
  td.number { text-align: start }
}
`;

export const usagePageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
};

const columns = ['Version', 'Route', 'Requests', 'A day', '2xx', '3xx', '4xx', '5xx'];

export function usagePage({ since, namesForgotten, usage: rows }: UsageReport): string {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Usage</title>
<style>${new Html(style)}</style>
</head>
<body>
<main>
<h1>Who calls what</h1>
<p>What this one gateway has answered since it started, ${moment(since)}. A restart begins anew, and
other gateways count for themselves. Clients say themselves who they are. At most 50 names are told apart;
the rest are “other”.${namesForgotten > 0 ? ` Names that were quiet and gave way to others: ${namesForgotten}.` : ''}</p>
${rows.length === 0 ? html`<p>Nobody has asked for anything yet.</p>` : table(rows)}
</main>
</body>
</html>
`.text;
}

// The roles say again what the elements are: as blocks on a phone they would lose it.
const table = (rows: readonly UsageRow[]) => html`<table role="table">
<caption>Requests by client, version and route</caption>
<thead role="rowgroup"><tr role="row">
<th role="columnheader" scope="col">Client</th>
${columns.map((name, index) => html`<th role="columnheader" scope="col"${new Html(index > 1 ? ' class="number"' : '')}>${name}</th>`)}
<th role="columnheader" scope="col">Query parameters</th>
<th role="columnheader" scope="col">First seen</th>
<th role="columnheader" scope="col">Last seen</th>
</tr></thead>
<tbody role="rowgroup">
${rows.map(row)}</tbody>
</table>`;

const row = (usage: UsageRow) => html`<tr role="row">
<th role="rowheader" scope="row">${usage.client}</th>
${cell('Version', usage.version)}
${cell('Route', usage.route)}
${number('Requests', usage.requests)}
${number('A day', usage.requestsADay)}
${Object.entries(usage.statuses).map(([name, requests]) => number(name, requests))}
${cell('Query parameters', parameters(usage))}
${cell('First seen', moment(usage.firstSeen))}
${cell('Last seen', moment(usage.lastSeen))}
</tr>
`;

const cell = (label: string, value: string | Html) =>
  html`<td role="cell" data-label="${label}">${value}</td>`;

const number = (label: string, value: number) =>
  html`<td role="cell" class="number" data-label="${label}">${value.toLocaleString('en')}</td>`;

const parameters = (usage: UsageRow) =>
  html`<ul>${usage.parameters.map(({ name, requests, unknown }) =>
    unknown
      ? html`<li class="unknown">${name} × ${requests}, read by nothing</li>`
      : html`<li>${name} × ${requests}</li>`,
  )}</ul>`;

const moment = (date: Date) =>
  html`<time datetime="${date.toISOString()}">${date.toISOString().slice(0, 16).replace('T', ' ')} UTC</time>`;

/** Text that is markup already. */
class Html {
  constructor(readonly text: string) {}
}

type Value = string | number | Html | readonly Html[];

/** Markup in which every value that is not markup itself is escaped. */
function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(
    parts
      .map((part, index) => (index === 0 ? '' : textOf(values[index - 1] ?? '')) + part)
      .join(''),
  );
}

function textOf(value: Value): string {
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
