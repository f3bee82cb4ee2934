// Empty: see package.json, and CONTRIBUTING.md ("Dependencies").
