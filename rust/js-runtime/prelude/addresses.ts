/** What the globals load of addresses at their first use: the classes that `fetch` knows. */

export { URL, URLSearchParams } from 'pie:inferlet/url.js';
