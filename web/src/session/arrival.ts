// Imported before anything else: the address is clean before the router, or anything else, looks at it.

import { takeTokenFromAddress } from './session';

takeTokenFromAddress();
// A link that is pasted into a tab that shows the page already does not load it anew.
window.addEventListener('hashchange', takeTokenFromAddress);
