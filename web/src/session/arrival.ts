// Imported before anything else, so that the token is gone from the address before the router reads it.

import { takeTokenFromAddress } from './session';

takeTokenFromAddress();
// A link that is pasted into a tab that shows the page already does not reload it.
window.addEventListener('hashchange', takeTokenFromAddress);
