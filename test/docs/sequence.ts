/* The picture of a call with DPoP, from top to bottom. npm shows no Mermaid, so it is drawn. */
import {
  actor,
  arrow,
  BOLD,
  DASHED,
  frame,
  left,
  MIDDLE,
  ownBox,
  right,
  SMALL,
  svg,
  text,
  type Colours,
} from './draw.ts';

/** What the picture says, for whoever does not see it. */
export const SEQUENCE =
  'The client gets a token bound to its key K. Each request has the token and a new proof signed with K. ' +
  'A thief without K gets 401, and a reused proof gets 401.';

/** The middle of each column. */
const CLIENT = 81;
const PROVIDER = 300;
const GATEHOUSE = 560;
const HANDLER = 799;
const TOP = 10;
const HEAD = 46;
const HEIGHT = 372;

const headAt = (x: number) => ({ x: x - 71, y: TOP, width: 142, height: HEAD });

const lifeline = (x: number, end: number, colour: string) =>
  `<path d="M${x} ${TOP + HEAD}V${end}" stroke="${colour}" stroke-dasharray="2 5"/>`;

interface Message {
  readonly from: number;
  readonly to: number;
  readonly y: number;
  readonly colour: string;
  readonly says: string;
  readonly attributes?: string;
}

/** An arrow with its text above it. */
function message({ from, to, y, colour, says, attributes = '' }: Message): string {
  const isForward = to > from;
  const end = isForward ? to - 8 : to + 8;
  const head = isForward ? right(to, y) : left(to, y);
  return [
    arrow(`M${from} ${y}H${end}`, colour, head, attributes),
    text((from + to) / 2, y - 8, colour, says, `${MIDDLE} ${SMALL}`),
  ].join('\n');
}

export function drawSequence(colours: Colours): string {
  const { ink, faint, line, own, refusal } = colours;
  const check = { x: GATEHOUSE - 140, y: 188, width: 280, height: 34 };
  const parts = [
    lifeline(CLIENT, HEIGHT - 12, line),
    lifeline(PROVIDER, 128, line),
    lifeline(GATEHOUSE, HEIGHT - 12, line),
    lifeline(HANDLER, 282, line),
    actor(headAt(CLIENT), colours, 'client', 'has the key K'),
    actor(headAt(PROVIDER), colours, 'provider'),
    ownBox(headAt(GATEHOUSE), colours, 'gatehouse'),
    actor(headAt(HANDLER), colours, 'your handler'),
    message({ from: CLIENT, to: PROVIDER, y: 92, colour: ink, says: 'token request, proof of K' }),
    message({
      from: PROVIDER,
      to: CLIENT,
      y: 122,
      colour: ink,
      says: 'token, bound to K',
      attributes: DASHED,
    }),
    message({
      from: CLIENT,
      to: GATEHOUSE,
      y: 170,
      colour: ink,
      says: 'token, and a proof of K: this method, this URL, this token, now',
    }),
    ownBox(check, colours, 'token? proof? same key? new?'),
    frame({ x: 24, y: 238, width: 846, height: 56 }, line),
    text(CLIENT + 16, 258, faint, 'all four hold', `${SMALL} ${BOLD}`),
    message({ from: GATEHOUSE, to: HANDLER, y: 276, colour: own, says: 'the caller' }),
    frame({ x: 24, y: 304, width: 846, height: 56 }, line),
    text(GATEHOUSE + 16, 324, faint, 'a thief without K,', `${SMALL} ${BOLD}`),
    text(GATEHOUSE + 16, 341, faint, 'or the same proof again', `${SMALL} ${BOLD}`),
    message({
      from: GATEHOUSE,
      to: CLIENT,
      y: 342,
      colour: refusal,
      says: '401, and the reason',
      attributes: DASHED,
    }),
  ];
  return svg({ width: 880, height: HEIGHT, title: SEQUENCE }, parts);
}
