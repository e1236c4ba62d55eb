/* A request as a line for a POSIX shell. */
const quote = (word) => (/^[\w/.:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The options for a method: curl sends GET by itself, and waits for the body of a HEAD that is named with -X. */
function methodWords(method) {
  if (method === 'GET') return [];
  return method === 'HEAD' ? ['--head'] : ['-X', method];
}

/** `curl -i` with the method, fields and body of the request. */
export function curlLine({ method, url, headers, body }) {
  const { href } = new URL(url);
  const words = ['curl', '-i', ...methodWords(method)];
  // Without it curl takes brackets for a range of URLs.
  if (/[[\]{}]/.test(href)) words.push('--globoff');
  for (const [name, value] of Object.entries(headers)) words.push('-H', `${name}: ${value}`);
  // A value that begins with @ names a file for --data.
  if (body !== undefined) words.push('--data-raw', body);
  return [...words, href].map(quote).join(' ');
}
