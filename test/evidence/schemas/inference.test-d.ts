/* A handler receives the output of a schema of any maker. The compiler is the test. */
import { open } from '../../../src/gate/rules/access.ts';
import { get, post } from '../../../src/service/routes/route.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import { is } from '../../support/same-type.ts';
import { MAKERS, type Order, type Page } from './makers.ts';

const { zod, valibot, ArkType } = MAKERS;

export const inferred = [
  post('/a', open, json(zod.order), ({ body }) => is<Order>()(body)),
  post('/b', open, json(zod.freeOrder), ({ body }) => is<Order>()(body)),
  post('/c', open, json(valibot.order), ({ body }) => is<Order>()(body)),
  post('/d', open, json(valibot.freeOrder), ({ body }) => is<Order>()(body)),
  post('/e', open, json(ArkType.order), ({ body }) => is<Order>()(body)),
  get('/f', open, query(zod.page), (request) => is<Page>()(request.query)),
  get('/g', open, query(valibot.page), (request) => is<Page>()(request.query)),
  get('/h', open, query(ArkType.page), (request) => is<Page>()(request.query)),
];

export const refused = [
  // @ts-expect-error the output has no such member
  post('/a', open, json(zod.order), ({ body }) => ({ other: body.other })),
  // @ts-expect-error nor has that of valibot
  post('/b', open, json(valibot.order), ({ body }) => ({ other: body.other })),
  // @ts-expect-error nor that of ArkType
  post('/c', open, json(ArkType.order), ({ body }) => ({ other: body.other })),
];
