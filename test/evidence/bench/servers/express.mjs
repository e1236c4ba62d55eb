// Express with express-oauth2-jwt-bearer, as their documentation puts them together.
import express from 'express';
import { auth } from 'express-oauth2-jwt-bearer';
import { audience, host, issuer, jwksUri, port, privateMessage, publicMessage } from './environment.mjs';
import { answerTo, isOrder } from './orders.mjs';

const app = express();
const checkToken = auth({ issuer, audience, jwksUri, tokenSigningAlg: 'RS256' });

app.get('/api/public', (_request, response) => { response.json(publicMessage()); });
app.get('/api/private', checkToken, (request, response) => { response.json(privateMessage(request.auth.payload.sub)); });
app.post('/api/orders', checkToken, express.json(), ({ body }, response) => {
  if (isOrder(body)) response.json(answerTo(body));
  else response.status(422).json({ error: 'unprocessable_content' });
});
// Without a handler of errors Express would render a page and write each stack to standard error.
app.use((error, _request, response, _next) => {
  const { status = 500, code = 'server_error', headers = {} } = error;
  response.set(headers).status(status).json({ error: code, message: status === 401 ? 'Authentication required' : error.message });
});
app.listen(port, host);
