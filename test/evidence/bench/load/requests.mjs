// The requests of a job: one text, or one for each record of a file of records of one width.
import { closeSync, openSync, readSync } from 'node:fs';

/** A function from the number of a request to its text. */
export function requestsOf({ before, after, records }) {
  if (records === undefined) return () => before + after;
  const { file, width, first, count } = records;
  const bytes = Buffer.alloc(count * width);
  const descriptor = openSync(file, 'r');
  readSync(descriptor, bytes, 0, bytes.length, first * width);
  closeSync(descriptor);
  return (index) => {
    const start = (index % count) * width;
    return before + bytes.latin1Slice(start, start + width) + after;
  };
}
