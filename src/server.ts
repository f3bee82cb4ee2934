// The entry. What it imports is imported late, since an old Node.js cannot even link all of it: that
// fails before the first line of any of it runs. No await either, which Node.js 12 cannot read here.
import './node-version.ts';
import './signals.ts';

import('./start.ts');
