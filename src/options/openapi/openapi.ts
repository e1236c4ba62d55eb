// Routes as an OpenAPI 3.1 document. Promises: it says what the routes say, and no more: their patterns,
// inputs, access, and the refusals that they can give. Does not list mounts, `HEAD`, or the service's own
// paths.
import type { JsonObject } from '../../verify/base/encoding.ts';
import { upstream, type Route, type Routes } from '../../service/routes/route.ts';
import { createRouter, isMount, routesProblems } from '../../service/routes/router.ts';
import { isProtected, type InForce } from './access.ts';
import {
  keyOf,
  operationIds,
  present,
  readInfo,
  requireDetails,
  securityScheme,
  type OpenApiDetails,
  type OpenApiInfo,
} from './details.ts';
import { operationOf, type Schemas } from './operation.ts';

type PathItem = Record<string, JsonObject>;

/** A plain object, to serve or to write. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: JsonObject;
  readonly servers: readonly object[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: Readonly<Record<string, JsonObject>>;
}

/**
 * Describes routes as an OpenAPI 3.1 document. Throws a `TypeError` for routes that cannot be served, for an
 * unknown member, and for details of a route that there is not.
 *
 * @example get('/openapi.json', open, () => openApi(table, { title: 'Orders', version: '1.0.0' }))
 */
export function openApi(served: Routes, info: OpenApiInfo, details: OpenApiDetails = {}): OpenApiDocument {
  const routes = listedRoutes(served);
  const { servers = [{ url: '/' }], issuer, ...ofApi } = readInfo(info);
  requireDetails(routes, details);

  const schemas: Schemas = {};
  const inForceOf = createInForce(served);
  const paths = pathsOf(routes, inForceOf, details, schemas);

  const isSecured = routes.some((route) => isProtected(inForceOf(route)));
  const components = {
    ...(isSecured && { securitySchemes: { token: securityScheme(issuer) } }),
    ...(Object.keys(schemas).length > 0 && { schemas }),
  };
  return { openapi: '3.1.1', info: present(ofApi), servers, paths, components };
}

/** Throws if they cannot be served. */
function listedRoutes(served: Routes) {
  const { routes }: Routes = Object(served);
  const isPolicy = [routes].flat().some((route) => route?.handler === upstream);
  const problems = routesProblems(served, [], isPolicy);
  if (problems.length > 0) throw new TypeError(problems.join('\n'));

  return routes.filter((route) => !isMount(route));
}

type InForceOf = (route: Route) => InForce;

function pathsOf(routes: readonly Route[], inForceOf: InForceOf, details: OpenApiDetails, schemas: Schemas) {
  const ids = operationIds(routes, details);
  const paths: Record<string, PathItem> = {};
  for (const route of routes) {
    const path = pathOf(route, Object.keys(paths));
    const given = { ...details[keyOf(route)], operationId: ids.get(route) ?? '' };
    const operation = operationOf(route, path, inForceOf(route), given, schemas);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation };
  }
  return paths;
}

/** The accesses of the rules that cover every path of a route, then its own. */
function createInForce({ rules }: Routes): InForceOf {
  const matchPath = createRouter([], rules);

  return ({ pattern, access }) => {
    // No prefix has a segment with a slash.
    const path = pattern.replace(/\{\w+\}/g, '%2F');
    return [...matchPath(path).demands, access];
  };
}

/** Paths that differ in the names of their parameters alone are one path (OpenAPI 3.1 §4.8.8.1). */
function pathOf({ pattern }: Route, paths: readonly string[]) {
  const form = formOf(pattern);
  return paths.find((path) => formOf(path) === form) ?? pattern;
}

const formOf = (pattern: string) => pattern.replace(/\{\w+\}/g, '{}');
