FROM node:24-bookworm-slim AS builder
WORKDIR /build
COPY package.json package-lock.json tsconfig.json tsconfig.dist.json ./
RUN npm ci
COPY src src
RUN npm run build

FROM node:24-bookworm-slim
ENV NODE_ENV=production
# The log names places in the source.
ENV NODE_OPTIONS=--enable-source-maps
WORKDIR /app
COPY --from=builder /build/dist dist
# By number, so that an orchestrator can see that it is not root.
USER 1000:1000
# Profile B, profile A.
EXPOSE 3001 8080
# Nothing else in here could ask. It reads the same settings as the service, and ends within 5 s.
HEALTHCHECK --interval=15s --timeout=10s --start-period=15s --retries=3 CMD ["node", "dist/server.js", "--probe"]
CMD ["node", "dist/server.js"]
