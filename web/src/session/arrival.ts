// Imported before anything else: the address is clean before the router, or anything else, looks at it.

import { takeTokenFromAddress } from './session';

takeTokenFromAddress();
// A link that is pasted into a tab that shows the page already does not reload it.
window.addEventListener('hashchange', takeTokenFromAddress);
