#!/usr/bin/env node
// The entry of everything: outfit-gateway COMMAND ... What it runs is imported late, since an old Node.js
// cannot even link all of it: that fails before the first line of any of it runs.
import '../node-version.ts';

import('./run.ts');
