/* Nest 10, 11 and 12 with the lines of the page, in applications whose exception filters and guards differ. */
import type { Server } from './programs.ts';

/** The exception filter of Nest's documentation, which writes a body of its own. */
const FILTER = `
@Catch(HttpException)
class HttpExceptionFilter implements ExceptionFilter {
  catch(exception: HttpException, host: ArgumentsHost) {
    const response = host.switchToHttp().getResponse<Response>();
    const status = exception.getStatus();
    response.status(status).json({ statusCode: status, timestamp: new Date().toISOString() });
  }
}`;

const BEFORE = `
import 'reflect-metadata';
import {
  Catch, Controller, Get, HttpException, Module, Req, UseFilters, UseGuards,
  type ArgumentsHost, type CanActivate, type ExceptionFilter,
} from '@nestjs/common';
import { APP_GUARD, NestFactory, Reflector } from '@nestjs/core';
import type { Response } from 'express';
${FILTER}`;

/** Nest's errors show on standard error. */
const OPTIONS = `{ logger: ['error', 'warn'] }`;

/** `provided` is what the module provides, and `used` what the application uses. */
const afterOf = (provided = '', used = '', adapter = '') => `
@Module({ controllers: [OrdersController], providers: [${provided}] })
class AppModule {}

const nest = await NestFactory.create(AppModule, ${adapter}${OPTIONS});
nest.setGlobalPrefix('mounted');
${used}
await nest.listen(port, '127.0.0.1');
const server: Server = nest.getHttpServer();`;

const GLOBAL_FILTER = 'nest.useGlobalFilters(new HttpExceptionFilter());';

const BASE = {
  heading: 'NestJS',
  runtime: 'node22',
  path: '/mounted/api/orders',
  dots: 'not found',
} as const;

const PLAIN: Server = {
  ...BASE,
  before: BEFORE,
  after: afterOf('everyRoute'),
};

/** How an application sets up its filters and its guard. */
const KINDS: Readonly<Record<string, Server>> = {
  APP_GUARD: PLAIN,
  'global-filter': { ...PLAIN, after: afterOf('everyRoute', GLOBAL_FILTER) },
  'controller-filter': {
    ...PLAIN,
    replaced: [['@Controller(', '@UseFilters(new HttpExceptionFilter())\n@Controller(']],
  },
  UseGuards: {
    ...PLAIN,
    after: afterOf(),
    replaced: [[`@AccessOf(needs(scope('read:orders')))`, `@UseGuards(guard(needs(scope('read:orders'))))`]],
  },
};

const packagesOf = (version: number) =>
  Object.fromEntries(
    ['common', 'core', 'platform-express'].map((name) => [`@nestjs/${name}`, `nest${version}-${name}`]),
  );

const VERSIONS = { nest10: packagesOf(10), nest11: packagesOf(11), nest12: {} };

/** As the page says. */
const ON_FASTIFY: Server = {
  ...BASE,
  before: BEFORE.replace('.json(', '.send(') + `\nimport { FastifyAdapter } from '@nestjs/platform-fastify';`,
  after: afterOf('everyRoute', GLOBAL_FILTER, 'new FastifyAdapter(), '),
  replaced: [
    ['http.getRequest(), access', 'http.getRequest().raw, access'],
    ['.setHeader(name, value)', '.header(name, value)'],
  ],
};

/** Each kind on each version. */
export const NEST: Readonly<Record<string, Server>> = {
  ...Object.fromEntries(
    Object.entries(VERSIONS).flatMap(([version, modules]) =>
      Object.entries(KINDS).map(([kind, server]) => [`${version}-${kind}`, { ...server, modules }]),
    ),
  ),
  'nest12-fastify': ON_FASTIFY,
};
