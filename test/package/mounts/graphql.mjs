// GraphQL Yoga in a service: a query, a mutation, and a subscription that ends with the caller's token.
import { GraphQLError } from 'graphql';
import { createPubSub, createSchema, createYoga } from 'graphql-yoga';
import { authenticated, mount, needs, runService, scope } from 'gatehouse-http';

const mayRead = needs(scope('read:orders'));
const mayWrite = needs(scope('write:orders'));

const orders = [{ id: '1', item: 'tea' }];
const changes = createPubSub();

/** What a field needs. The response gets the status and the challenges of the refusal. */
function demand({ authorize }, access) {
  const { refusal } = authorize(access);
  if (!refusal) return;

  const challenges = refusal.headers.filter(([name]) => name === 'WWW-Authenticate');
  const http = { status: refusal.status, headers: Object.fromEntries(new Headers(challenges)) };
  throw new GraphQLError('The token does not allow this', { extensions: { http } });
}

const schema = createSchema({
  typeDefs: `
    type Order { id: ID!, item: String! }
    type Query { orders: [Order!]! }
    type Mutation { addOrder(item: String!): Order! }
    type Subscription { orderAdded: Order! }`,
  resolvers: {
    Query: {
      orders(_, __, context) {
        demand(context, mayRead);
        return orders;
      },
    },
    Mutation: {
      addOrder(_, { item }, context) {
        demand(context, mayWrite);
        const order = { id: String(orders.length + 1), item };
        orders.push(order);
        changes.publish('added', order);
        return order;
      },
    },
    Subscription: {
      orderAdded: {
        subscribe(_, __, context) {
          demand(context, mayRead);
          return changes.subscribe('added');
        },
        resolve: (order) => order,
      },
    },
  },
});

const yoga = createYoga({ schema, graphiql: false, landingPage: false });

/** Yoga keeps the error of a body that is too long to itself. Read here, the service sends its 413. */
async function serve(request, { caller, authorize }) {
  const body = request.body && (await request.arrayBuffer());
  return yoga.fetch(new Request(request, { body, signal: request.signal }), { caller, authorize });
}

await runService({ routes: [mount('/graphql', authenticated, serve, { limitBytes: 65_536 })] });
