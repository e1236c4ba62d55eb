/* Compares files byte for byte, and names the first that differs with its first byte. */
import { gunzipSync } from 'node:zlib';

export type Files = ReadonlyMap<string, Uint8Array>;

interface Archive {
  readonly files: Files;
  /** Who may do what with each file: the octal digits of its header. */
  readonly modes: Files;
}

const BLOCK = 512;

const textIn = (header: Uint8Array, from: number, to: number) =>
  Buffer.from(header.subarray(from, to)).toString('latin1').replace(/\0.*$/s, '').trim();

/** A tarball as npm packs it (POSIX ustar): for each file a header and its bytes, in blocks. */
export function readTarball(tarball: Uint8Array): Archive {
  const tar = gunzipSync(tarball);
  const files = new Map<string, Uint8Array>();
  const modes = new Map<string, Uint8Array>();
  let at = 0;
  while (at < tar.length && tar[at] !== 0) {
    const header = tar.subarray(at, at + BLOCK);
    const name = [textIn(header, 345, 500), textIn(header, 0, 100)].filter((part) => part !== '').join('/');
    const size = Number.parseInt(textIn(header, 124, 136), 8);
    modes.set(name, header.subarray(100, 107));
    files.set(name, tar.subarray(at + BLOCK, at + BLOCK + size));
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return { files, modes };
}

/** Where the two begin to differ; undefined when they are the same. */
export function differenceOf(one: Uint8Array, other: Uint8Array): number | undefined {
  const index = one.findIndex((byte, place) => byte !== other[place]);
  if (index !== -1) return index;
  return one.length === other.length ? undefined : one.length;
}

const shown = (byte: number | undefined) =>
  byte === undefined ? 'its end' : `0x${byte.toString(16).padStart(2, '0')}`;

/** The first difference between two sets of files, in words; undefined when there is none. */
export function firstDifference(files: Files, others: Files): string | undefined {
  for (const [name, bytes] of files) {
    const other = others.get(name);
    if (other === undefined) return `${name} is in the first and not in the second`;
    const at = differenceOf(bytes, other);
    if (at !== undefined) return `${name} differs at byte ${at}: ${shown(bytes[at])} and ${shown(other[at])}`;
  }
  const added = [...others.keys()].find((name) => !files.has(name));
  return added === undefined ? undefined : `${added} is in the second and not in the first`;
}

/**
 * The same for two tarballs: the first difference in their files, or else in their modes, or else in the
 * archives.
 */
export function tarballDifference(one: Uint8Array, other: Uint8Array): string | undefined {
  const at = differenceOf(one, other);
  if (at === undefined) return undefined;
  const first = readTarball(one);
  const second = readTarball(other);
  const inFiles = firstDifference(first.files, second.files);
  if (inFiles !== undefined) return inFiles;
  const inModes = firstDifference(first.modes, second.modes);
  if (inModes !== undefined) return `the mode of ${inModes}`;
  return `the files are the same; the archives differ at byte ${at}`;
}
