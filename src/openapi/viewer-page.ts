// The page at /api/docs: its HTML.

interface PageOptions {
  /** Where the files are, relative to the page. */
  readonly folder: string;
  /** An SVG. */
  readonly logo: string;
  readonly hasGraphiQL: boolean;
}

export const page = ({ folder, logo, hasGraphiQL }: PageOptions) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>REST API · Outfit gateway</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(logo)}">
<link rel="stylesheet" href="${folder}/swagger-ui.css">
<link rel="stylesheet" href="${folder}/page.css">
</head>
<body>
<header>
<a class="home" href="../">${logo}<span>Outfit gateway</span></a>
<nav aria-label="Gateway">
${hasGraphiQL ? '<a href="../graphql">GraphiQL</a>\n' : ''}<a href="openapi.json">openapi.json</a>
</nav>
</header>
<div id="viewer"><noscript>This page needs JavaScript. The document itself is <a href="openapi.json">openapi.json</a>.</noscript></div>
<script src="${folder}/swagger-ui.js"></script>
<script src="${folder}/page.js"></script>
</body>
</html>
`;
