/* Makes a screenshot smaller: Chromium picks filters and a level of compression for speed. Text on flat ground is smallest
   without any filter (RFC 2083 §6). */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE_BYTES = 8;
/** Chromium's screenshots have three of one byte each: red, green and blue. */
const CHANNELS = 3;

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

/** RFC 2083 §3.2: length, type, data, check value. */
function chunksOf(png: Buffer): readonly Chunk[] {
  const chunks: Chunk[] = [];
  let at = SIGNATURE_BYTES;
  while (at < png.length) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    chunks.push({ type, data: png.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

function bytesOf({ type, data }: Chunk): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const bytes = Buffer.alloc(named.length + 8);
  bytes.writeUInt32BE(data.length);
  named.copy(bytes, 4);
  bytes.writeUInt32BE(crc32(named), named.length + 4);
  return bytes;
}

/** RFC 2083 §6.6: the one of the three that is nearest to their linear estimate. */
function paeth(left: number, above: number, corner: number): number {
  const estimate = left + above - corner;
  const [byLeft, byAbove, byCorner] = [left, above, corner].map((one) => Math.abs(estimate - one)) as [
    number,
    number,
    number,
  ];
  if (byLeft <= byAbove && byLeft <= byCorner) return left;
  return byAbove <= byCorner ? above : corner;
}

type Predict = (left: number, above: number, corner: number) => number;

/** RFC 2083 §6.1, by the number of the filter. */
const FILTERS: readonly Predict[] = [
  () => 0,
  (left) => left,
  (_, above) => above,
  (left, above) => Math.floor((left + above) / 2),
  paeth,
];

/** The rows without their filters, each after a byte that says so. */
function unfiltered(filtered: Buffer, width: number): Buffer {
  const row = width * CHANNELS + 1;
  const plain = Buffer.alloc(filtered.length);
  for (let start = 0; start < filtered.length; start += row) {
    const predict = FILTERS[filtered[start]!]!;
    for (let index = 1; index < row; index += 1) {
      const at = start + index;
      const isFirst = index <= CHANNELS;
      const left = isFirst ? 0 : plain[at - CHANNELS]!;
      const above = plain[at - row] ?? 0;
      const corner = isFirst ? 0 : (plain[at - row - CHANNELS] ?? 0);
      plain[at] = filtered[at]! + predict(left, above, corner);
    }
  }
  return plain;
}

/** The same picture in fewer bytes. */
export function smaller(png: Buffer): Buffer {
  const chunks = chunksOf(png);
  const header = chunks[0]!;
  // RFC 2083 §4.1.1: eight bits, colours without transparency, not interlaced.
  if (header.data.toString('hex', SIGNATURE_BYTES) !== '0802000000') throw new Error('another kind of PNG');

  const packed = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data));
  const plain = unfiltered(inflateSync(packed), header.data.readUInt32BE(0));
  const data = deflateSync(plain, { level: 9 });
  const kept = [header, { type: 'IDAT', data }, { type: 'IEND', data: Buffer.alloc(0) }];
  return Buffer.concat([png.subarray(0, SIGNATURE_BYTES), ...kept.map(bytesOf)]);
}
