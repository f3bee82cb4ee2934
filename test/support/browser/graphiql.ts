// What there is on the page of GraphiQL.
import type { Page } from 'playwright-core';

/** The button that asks. */
export const play = '.graphiql-execute-button';

/** Its editors. */
export const editors = {
  query: '.graphiql-query-editor',
  headers: '.graphiql-editor-tool > :nth-child(2)',
  answer: '.result-window',
} as const;

const modelIn = (name: keyof typeof editors) =>
  `document.querySelector('${editors[name]}')?.closest('section, div').querySelector('.CodeMirror')?.CodeMirror`;

/** All of the text in an editor: on the screen there may be a part of it. */
export const textIn = (page: Page, name: keyof typeof editors): Promise<string> =>
  page.evaluate(`${modelIn(name)}?.getValue() ?? ''`);

export const answerOf = (page: Page) => textIn(page, 'answer');

export const write = (page: Page, name: keyof typeof editors, text: string): Promise<void> =>
  page.evaluate(`${modelIn(name)}.setValue(${JSON.stringify(text)})`);
