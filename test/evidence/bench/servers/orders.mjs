// What the servers take in the case of a POST: an order of about 1 kB, judged by hand and as a JSON Schema, and what they answer.
const isText = (value) => typeof value === 'string' && value.length <= 100;
const isLine = (line) => isText(line?.sku) && Number.isInteger(line.amount) && line.amount >= 1 && isText(line.note);
export const isOrder = (order) => isText(order?.customer) && Array.isArray(order.lines) && order.lines.every(isLine);

const text = { type: 'string', maxLength: 100 };
export const orderSchema = {
  type: 'object',
  required: ['customer', 'lines'],
  properties: {
    customer: text,
    lines: {
      type: 'array',
      items: {
        type: 'object',
        required: ['sku', 'amount', 'note'],
        properties: { sku: text, amount: { type: 'integer', minimum: 1 }, note: text },
      },
    },
  },
};

export const answerTo = ({ customer, lines }) => ({ customer, lines: lines.length });
