# Two arguments choose what the image is built on and runs on, and can pin a digest. By default it runs on Node
# alone, without a shell or a package manager. A slim image has both:
#   docker build --build-arg BASE=node:24-trixie-slim .
ARG BUILDER=node:24-trixie-slim
ARG BASE=gcr.io/distroless/nodejs24-debian13

FROM ${BUILDER} AS builder
WORKDIR /build
COPY package.json package-lock.json tsconfig.json tsconfig.dist.json ./
RUN npm ci
COPY src src
RUN npm run build

FROM ${BASE}
ENV NODE_ENV=production
# The log names places in the source.
ENV NODE_OPTIONS=--enable-source-maps
# The folders of Node in these base images.
ENV PATH=/nodejs/bin:/usr/local/bin:/usr/bin:/bin
WORKDIR /app
# A program that is mounted here imports 'gatehouse-http' by this name.
COPY --from=builder /build/package.json package.json
COPY --from=builder /build/dist dist
# A number, so that an orchestrator can see that the user is not root.
USER 65532:65532
# Profile B, profile A.
EXPOSE 3001 8080
# The image has no curl. The probe reads the same settings as the service, and ends within 5 s.
HEALTHCHECK --interval=15s --timeout=10s --start-period=15s --retries=3 CMD ["node", "dist/server.js", "--probe"]
ENTRYPOINT ["node"]
CMD ["dist/server.js"]
