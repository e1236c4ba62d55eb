/* Requests as events of AWS Lambda, and its results as responses, after AWS's documentation. The text of this
   file is part of each program. */
import type { IncomingMessage, ServerResponse } from 'node:http';

type Fields = Record<string, string[]>;

interface Result {
  readonly statusCode?: number;
  readonly headers?: Record<string, string>;
  readonly multiValueHeaders?: Record<string, string[]>;
  readonly body?: string;
}

function fieldsOf({ rawHeaders }: IncomingMessage): Fields {
  const fields: Fields = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    (fields[name.toLowerCase()] ??= []).push(value);
  }
  return fields;
}

const eachOf = (fields: Fields, choose: (values: string[]) => string | undefined) =>
  Object.fromEntries(Object.entries(fields).map(([name, values]) => [name, choose(values)]));

/** Each kind of event: of a REST API at the stage `prod`, of an HTTP API, of a function URL, of a balancer. */
const EVENTS = {
  rest(method: string, path: string, fields: Fields) {
    const stageless = path.replace(/^\/prod/, '');
    return {
      resource: '/{proxy+}',
      path: stageless,
      pathParameters: { proxy: stageless.slice(1) },
      httpMethod: method,
      headers: eachOf(fields, (values) => values.at(-1)),
      multiValueHeaders: fields,
      requestContext: { path, stage: 'prod', httpMethod: method, identity: { sourceIp: '192.0.2.1' } },
    };
  },

  http(method: string, path: string, fields: Fields) {
    return {
      version: '2.0',
      rawPath: path,
      rawQueryString: '',
      headers: eachOf(fields, (values) => values.join(',')),
      requestContext: { domainName: fields.host?.[0], http: { method, path, sourceIp: '192.0.2.1' } },
    };
  },

  balancer(method: string, path: string, fields: Fields) {
    const requestContext = { elb: { targetGroupArn: 'arn' }, identity: { sourceIp: '192.0.2.1' } };
    return { path, httpMethod: method, multiValueHeaders: fields, requestContext };
  },
};

export function eventOf(kind: keyof typeof EVENTS, request: IncomingMessage): object {
  const { method = '', url = '' } = request;
  return { ...EVENTS[kind](method, url, fieldsOf(request)), body: '', isBase64Encoded: false };
}

/** A field with several values is written once for each. */
export function sendResult(result: unknown, response: ServerResponse): void {
  const { statusCode = 500, headers = {}, multiValueHeaders = {}, body = '' }: Result = Object(result);
  for (const [name, value] of Object.entries({ ...headers, ...multiValueHeaders })) {
    response.setHeader(name, value);
  }
  response.writeHead(statusCode).end(body);
}
