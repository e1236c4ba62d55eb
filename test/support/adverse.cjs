/* Inputs whose errors come from Node, each with what must become of it. CommonJS, because it runs in the realm
   of whoever loads it: in a context of node:vm, in Jest and in Vitest. Node's own errors are of another realm
   there. Each case throws if the outcome is wrong. */
const assert = require('node:assert');
const { createPublicKey } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { createServer, request } = require('node:http');

const encode = (bytes) => Buffer.from(bytes).toString('base64url');

/** Sends one request, and resolves with its status and text. */
const ask = (url, { method = 'GET', headers = {}, body } = {}) =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { connection: 'close', ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    sent.on('error', reject).end(body);
  });

/** The lines that gatehouse logs while `work` runs. */
async function linesOf(work) {
  const { stdout } = process;
  const { write } = stdout;
  let written = '';
  // A test runner may report over the same stream.
  stdout.write = (text, ...others) => {
    if (typeof text !== 'string' || !text.startsWith('{"time"')) return write.call(stdout, text, ...others);

    written += text;
    return true;
  };
  try {
    await work();
    // The lines of a turn are written after it.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  } finally {
    stdout.write = write;
  }
  const lines = written.trim().split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

function nodesError() {
  try {
    return readFileSync('/nowhere/at/all');
  } catch (error) {
    return error;
  }
}

/** Name of each case → the case. `gatehouse`, `testing` and `log` are built entry points of the package. */
exports.casesOf = ({ gatehouse, testing, log: { jsonLog } }) => {
  const { createService, get, json, open, authenticated, post, reply } = gatehouse;
  const issuer = testing.createTestIssuer();
  const routes = [
    get('/api/me', authenticated, ({ caller }) => ({ id: caller.subject })),
    get('/open/{id}', open, () => ({})),
    post('/api/orders', open, json(), ({ body }) => ({ body })),
    get('/bytes/of-node', open, () => reply(200, Buffer.from('hi'), { 'Content-Type': 'text/plain' })),
    get('/bytes/of-here', open, () => reply(200, new Uint8Array([104, 105]), { 'Content-Type': 'text/plain' })),
    get('/errors/returned', open, nodesError),
    get('/errors/thrown', open, () => {
      throw new RangeError('secret');
    }),
    get('/errors/of-node', open, () => {
      throw nodesError();
    }),
  ];

  /** Runs `work` with the URL of a service, and returns what the service logged. */
  const serving = (work, options = {}) =>
    linesOf(async () => {
      const log = jsonLog({ level: 'debug' });
      const given = { ...issuer.options, log, host: '127.0.0.1', port: 0, ...options };
      const service = createService({ routes }, given);
      try {
        await work(await service.listen());
      } finally {
        await service.stop();
      }
    });

  const statusIs = async (expected, path, asked) => {
    await serving(async (url) => {
      const { status, text } = await ask(url + path, asked);
      assert.equal(status, expected, text);
    });
  };

  const failureAt = async (path) => {
    const lines = await serving(async (url) => {
      assert.equal((await ask(url + path)).status, 500);
    });
    return lines.find(({ message }) => message === 'request failed');
  };

  return {
    'a valid token is 200': () => statusIs(200, '/api/me', { headers: issuer.bearer() }),

    'a payload that is not UTF-8 is 401': async () => {
      const [header, , signature] = issuer.token().split('.');
      const token = [header, encode([0xff]), signature].join('.');
      await statusIs(401, '/api/me', { headers: { authorization: `Bearer ${token}` } });
    },

    'a header that is not JSON is 401': async () => {
      const [, payload, signature] = issuer.token().split('.');
      const token = [encode('{'), payload, signature].join('.');
      await statusIs(401, '/api/me', { headers: { authorization: `Bearer ${token}` } });
    },

    'a body that is not UTF-8, or not JSON, is 400': async () => {
      const headers = { 'content-type': 'application/json' };
      for (const body of [Buffer.from([0xff]), '{']) {
        await statusIs(400, '/api/orders', { method: 'POST', headers, body });
      }
    },

    'a broken escape in a path is 404': () => statusIs(404, '/open/%ff'),

    'a key off its curve is skipped, and the others verify': async () => {
      const off = { kty: 'EC', crv: 'P-256', x: encode(new Uint8Array(32)), y: encode(new Uint8Array(32)) };
      assert.throws(() => createPublicKey({ key: off, format: 'jwk' }));
      const fetchKeys = async () => ({ keys: [off, ...(await issuer.options.fetchKeys()).keys] });
      const lines = await serving(
        async (url) => {
          assert.equal((await ask(`${url}/api/me`, { headers: issuer.bearer() })).status, 200);
        },
        { algorithms: ['RS256', 'ES256'], fetchKeys },
      );
      const skipped = lines.filter(({ message }) => message === 'signing key skipped');
      assert.equal(skipped.map(({ reason }) => reason).join(), 'not-importable');
    },

    'a provider without a listener is connection-failed, and requests are 503': async () => {
      const closed = createServer();
      await new Promise((resolve) => closed.listen(0, '127.0.0.1', resolve));
      const { port } = closed.address();
      await new Promise((resolve) => closed.close(resolve));
      const lines = await serving(
        async (url) => {
          assert.equal((await ask(`${url}/api/me`, { headers: issuer.bearer() })).status, 503);
        },
        { jwksUri: `https://127.0.0.1:${port}/keys`, fetchKeys: undefined },
      );
      const failed = lines.filter(({ message }) => message === 'signing keys could not be fetched');
      assert.equal(failed[0]?.reason, 'connection-failed', JSON.stringify(failed));
    },

    'bytes of any realm are sent as bytes': async () => {
      for (const path of ['/bytes/of-node', '/bytes/of-here']) {
        await serving(async (url) => {
          const { status, text } = await ask(url + path);
          assert.equal(`${status} ${text}`, '200 hi');
        });
      }
    },

    'an error that a handler returns is 500, not JSON': () => failureAt('/errors/returned'),

    'an error that a handler throws is logged by its name, without its message': async () => {
      const thrown = await failureAt('/errors/thrown');
      assert.equal(thrown?.error, 'RangeError');
      assert.doesNotMatch(JSON.stringify(thrown), /secret/);
      assert.equal((await failureAt('/errors/of-node'))?.error, 'Error');
    },

    'empty maps of issuers count as absent': () =>
      serving(async () => {}, { issuers: {} }),
  };
};
