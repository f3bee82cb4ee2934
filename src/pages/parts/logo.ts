// The logo: a coat hanger in a box of 24 by 24.

export const hangerPath = 'M10 7a2 2 0 1 1 2 2v2l9 6a1 1 0 0 1-.6 1.8H3.6A1 1 0 0 1 3 17l9-6';

/** Icon of GraphiQL and Swagger UI, which do not use the layout. */
export const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="28" height="28" fill="none" stroke="#b0447a" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"><path d="${hangerPath}"/></svg>`;
