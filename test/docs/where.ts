/* The picture of README.md that shows where gatehouse stands. */
import {
  actor,
  arrow,
  BOLD,
  DASHED,
  down,
  END,
  frame,
  left,
  MIDDLE,
  rectangle,
  right,
  SMALL,
  svg,
  text,
  up,
  type Colours,
} from './draw.ts';

/** What the picture says, for whoever does not see it. */
export const WHERE =
  "gatehouse verifies a client's token with the identity provider's public keys, " +
  "and the proof with the client's public key. Your handlers get the caller. A refused client gets the reason.";

const CHECKS = ['request', 'token', 'proof', 'access'] as const;

/** The gate, with its checks in their order. */
function gate({ own, onOwn }: Colours): string {
  const checks = CHECKS.map((name, index) => {
    const x = 335 + index * 62;
    return (
      `<rect x="${x}" y="140" width="56" height="26" rx="5" fill="${onOwn}" fill-opacity="0.16"/>` +
      text(x + 28, 157, onOwn, name, `${MIDDLE} ${SMALL}`)
    );
  });
  return [
    rectangle({ x: 326, y: 104, width: 260, height: 78 }, `fill="${own}"`),
    text(456, 128, onOwn, 'gatehouse', `${MIDDLE} ${BOLD}`),
    ...checks,
  ].join('\n');
}

export function drawWhere(colours: Colours): string {
  const { ink, faint, line, refusal } = colours;
  const parts = [
    frame({ x: 308, y: 74, width: 556, height: 126 }, line),
    text(848, 94, faint, 'your Node process', `${END} ${SMALL}`),
    actor({ x: 16, y: 108, width: 130, height: 70 }, colours, 'client', 'app, agent, service'),
    gate(colours),
    actor({ x: 700, y: 108, width: 148, height: 70 }, colours, 'your handlers', 'never see a bad token'),
    actor({ x: 376, y: 8, width: 160, height: 46 }, colours, 'identity provider', 'the one you have'),
    actor({ x: 376, y: 238, width: 160, height: 46 }, colours, 'Redis or Valkey', 'only with replicas'),
    arrow('M146 130H318', ink, right(326, 130)),
    text(226, 120, ink, 'token, and a fresh proof', `${MIDDLE} ${SMALL}`),
    arrow('M326 160H154', refusal, left(146, 160)),
    text(226, 178, refusal, 'refusal, and its reason', `${MIDDLE} ${SMALL}`),
    arrow('M586 143H692', ink, right(700, 143)),
    text(643, 133, ink, 'the caller', `${MIDDLE} ${SMALL}`),
    arrow('M456 54V96', ink, down(456, 104)),
    text(466, 70, faint, 'public keys', SMALL),
    arrow('M456 238V190', ink, up(456, 182), DASHED),
    text(466, 222, faint, 'used proofs', SMALL),
  ];
  return svg({ width: 880, height: 300, title: WHERE }, parts);
}
