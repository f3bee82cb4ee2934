// What there is on the page of GraphiQL.
import type { Page } from 'playwright-core';

/** The button that asks. */
export const play = '.graphiql-execute-button';

/** What stands in an editor: it writes spaces as others. */
export async function textOf(page: Page, area: string): Promise<string> {
  const text = await page.locator(`${area} .view-lines`).textContent();
  return (text ?? '').replaceAll('\u00a0', ' ');
}

/** The text of one of the editors, by the end of its name: on the screen, long lines are broken. */
export const modelOf = (page: Page, name: string): Promise<string> =>
  page.evaluate(
    `__MONACO.editor.getModels().find(({ uri }) => uri.path.endsWith('${name}')).getValue()`,
  );

export const answerOf = (page: Page) => modelOf(page, 'response.json');
