// `GET /usage` as an HTML page: no script, no external resource.
import { createHash } from 'node:crypto';
import type { ComponentChildren } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { statusClasses, type UsageReport, type UsageRow } from './usage.ts';

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
thead th { color: var(--soft); font-weight: 600; overflow-wrap: normal }
td.number, th:nth-child(n + 4):nth-child(-n + 9) { text-align: end; white-space: nowrap; min-width: 0 }
ul { margin: 0; padding: 0; list-style: none }
.unknown { color: var(--warn); font-weight: 600 }
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

/** Columns beside the client. */
const columns: readonly (readonly [name: string, of: (row: UsageRow) => ComponentChildren])[] = [
  ['Version', ({ version }) => version],
  ['Route', ({ route }) => route],
  ['Requests', ({ requests }) => requests],
  ['A day', ({ requestsADay }) => requestsADay],
  ...statusClasses.map((name) => [name, (row: UsageRow) => row.statuses[name]] as const),
  ['Query parameters', ({ parameters }) => <Parameters of={parameters} />],
  ['First seen', ({ firstSeen }) => <Moment of={firstSeen} />],
  ['Last seen', ({ lastSeen }) => <Moment of={lastSeen} />],
];

export function usagePage({ since, namesForgotten, usage }: UsageReport): string {
  return `<!DOCTYPE html>\n${renderToString(
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Usage</title>
        <style>{style}</style>
      </head>
      <body>
        <main>
          <h1>Who calls what</h1>
          <p>
            What this one gateway has answered since it started, <Moment of={since} />. A restart
            begins anew, and other gateways count for themselves. Clients say themselves who they
            are. At most 50 names are told apart; the rest are “other”.
            {namesForgotten > 0 && ` Names evicted after inactivity: ${namesForgotten}.`}
          </p>
          {usage.length > 0 ? <Table rows={usage} /> : <p>No requests yet.</p>}
        </main>
      </body>
    </html>,
  )}\n`;
}

// Wider than the screen of a phone, which WCAG allows for data tables. @see https://www.w3.org/TR/WCAG22/#reflow
const Table = ({ rows }: { readonly rows: readonly UsageRow[] }) => (
  <table>
    <caption>Requests by client, version and route</caption>
    <thead>
      <tr>
        {['Client', ...columns.map(([name]) => name)].map((name) => (
          <th scope="col">{name}</th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr>
          <th scope="row">{row.client}</th>
          {columns.map(([, of]) => {
            const value = of(row);
            const isNumber = typeof value === 'number';
            return (
              <td class={isNumber ? 'number' : undefined}>
                {isNumber ? value.toLocaleString('en') : value}
              </td>
            );
          })}
        </tr>
      ))}
    </tbody>
  </table>
);

const Parameters = ({ of }: { readonly of: UsageRow['parameters'] }) => (
  <ul>
    {of.map(({ name, requests, unknown }) => (
      <li class={unknown ? 'unknown' : undefined}>
        {`${name} × ${requests}${unknown ? ', read by nothing' : ''}`}
      </li>
    ))}
  </ul>
);

const Moment = ({ of }: { readonly of: Date }) => (
  <time dateTime={of.toISOString()}>{of.toISOString().slice(0, 16).replace('T', ' ')} UTC</time>
);
