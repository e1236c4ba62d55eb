/* The picture of the three places where gatehouse can stand, side by side. */
import {
  actor,
  arrow,
  BOLD,
  DASHED,
  down,
  END,
  frame,
  MIDDLE,
  ownBox,
  rectangle,
  SMALL,
  svg,
  text,
  up,
  type Colours,
} from './draw.ts';

/** What the picture says, for whoever does not see it. */
export const SHAPES =
  'The gate runs inside your server, before your handlers. A service contains your routes. A policy runs ' +
  'beside your proxy, which asks the policy about each request.';

const STEP = 294;
const WIDTH = 280;
const HEIGHT = 330;

/** Title, code and client, which every shape has. */
function top(x: number, colours: Colours, title: string, code: string): readonly string[] {
  const middle = x + WIDTH / 2;
  const mono = `${MIDDLE} ${SMALL} font-family="ui-monospace, monospace"`;
  return [
    text(middle, 20, colours.ink, title, `${MIDDLE} ${BOLD} font-size="15"`),
    text(middle, 40, colours.faint, code, mono),
    actor({ x: middle - 70, y: 56, width: 140, height: 36 }, colours, 'client'),
  ];
}

const downward = (x: number, from: number, to: number, colour: string) =>
  arrow(`M${x} ${from}V${to - 8}`, colour, down(x, to));

function gate(x: number, colours: Colours): readonly string[] {
  const { ink, faint, line } = colours;
  const middle = x + WIDTH / 2;
  return [
    ...top(x, colours, 'In your server', 'createGate'),
    frame({ x: x + 20, y: 122, width: 240, height: 196 }, line),
    text(x + 248, 140, faint, 'your server', `${END} ${SMALL}`),
    downward(middle, 92, 154, ink),
    ownBox({ x: middle - 90, y: 154, width: 180, height: 50 }, colours, 'gatehouse', 'the gate'),
    downward(middle, 204, 250, ink),
    text(middle + 10, 230, faint, 'the caller', SMALL),
    actor(
      { x: middle - 90, y: 250, width: 180, height: 54 },
      colours,
      'your handlers',
      'Express, Fastify, Hono, …',
    ),
  ];
}

function service(x: number, colours: Colours): readonly string[] {
  const { ink, faint, own } = colours;
  const middle = x + WIDTH / 2;
  return [
    ...top(x, colours, 'A service of its own', 'runService, createService'),
    rectangle(
      { x: x + 20, y: 122, width: 240, height: 196 },
      `fill="${own}" fill-opacity="0.14" stroke="${own}"`,
    ),
    text(x + 248, 140, faint, 'gatehouse', `${END} ${SMALL}`),
    downward(middle, 92, 154, ink),
    ownBox({ x: middle - 90, y: 154, width: 180, height: 50 }, colours, 'checks', 'limits, bodies, metrics'),
    downward(middle, 204, 250, ink),
    text(middle + 10, 230, faint, 'caller, body', SMALL),
    actor({ x: middle - 90, y: 250, width: 180, height: 54 }, colours, 'your routes', 'a function for each'),
  ];
}

function policy(x: number, colours: Colours): readonly string[] {
  const { ink, faint } = colours;
  const middle = x + WIDTH / 2;
  const toServer = x + 66;
  const toPolicy = x + 196;
  return [
    ...top(x, colours, 'Beside your proxy', 'runForwardAuth'),
    downward(middle, 92, 130, ink),
    actor(
      { x: x + 6, y: 130, width: 268, height: 50 },
      colours,
      'your proxy',
      'nginx, Caddy, Traefik, Envoy',
    ),
    downward(toServer, 180, 250, ink),
    text(toServer + 10, 212, faint, 'if it may,', SMALL),
    text(toServer + 10, 228, faint, 'with the caller', SMALL),
    arrow(`M${toPolicy} 188V242`, ink, `${down(toPolicy, 250)}${up(toPolicy, 180)}`, DASHED),
    text(toPolicy + 10, 220, faint, 'may it?', SMALL),
    actor({ x: x + 6, y: 250, width: 124, height: 54 }, colours, 'your server', 'any language'),
    ownBox({ x: x + 150, y: 250, width: 124, height: 54 }, colours, 'gatehouse', 'a policy'),
  ];
}

export function drawShapes(colours: Colours): string {
  const parts = [gate, service, policy].flatMap((shape, index) => shape(index * STEP + 6, colours));
  return svg({ width: 880, height: HEIGHT, title: SHAPES }, parts);
}
