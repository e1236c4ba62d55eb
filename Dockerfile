FROM node:20-bookworm-slim AS builder
WORKDIR /build
COPY package.json package-lock.json tsconfig.json ./
RUN npm ci
COPY src src
RUN npm run build

FROM node:20-bookworm-slim
WORKDIR /app
COPY --from=builder /build/dist dist
USER node
# Profile B, profile A.
EXPOSE 3001 8080
CMD ["node", "dist/server.js"]
