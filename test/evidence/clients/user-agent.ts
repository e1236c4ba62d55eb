/* The browser of a user who does what a page asks for: follows redirects, and keeps cookies. */

/** The redirect URI of the clients, at which nothing listens. */
export const REDIRECT = 'http://127.0.0.1:9/callback';

const MOST_REDIRECTS = 20;

/** Goes to an authorization URL, and gives the URL with which the user comes back to the client. */
export async function authorize(start: URL): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = start;
  for (let count = 0; count < MOST_REDIRECTS; count += 1) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`${url.pathname}: ${response.status} ${await response.text()}`);

    url = new URL(location, url);
    if (url.href.startsWith(REDIRECT)) return url;
  }
  throw new Error('redirected without end');
}
