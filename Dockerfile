# docker build . (Docker 23 or newer). A release gives NODE_IMAGE with its digest: CONTRIBUTING.md has the command.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
# Takes the place of packages that nothing needs.
COPY .ci/unused .ci/unused
# Installing would also build, for which the sources are not here yet.
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
COPY . .
RUN npm run package && mv package/outfit-gateway-*/ /app

FROM ${NODE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 DATA_DIR=/data
WORKDIR /app
COPY --from=build /app ./
RUN install -d -o node -g node /data
USER node
VOLUME /data
# PORT, and METRICS_PORT where that is set to 9100.
EXPOSE 4000 9100
# By the shell of the base: another Node.js every ten seconds would take 40 MB and a tenth of a second of a processor.
# The first start of the embedded database may take some seconds.
HEALTHCHECK --start-period=60s --interval=10s --timeout=3s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$PORT && printf 'GET /health/live HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ $status = 200 ]"]
# Not by npm, which does not pass SIGTERM on in time.
ENTRYPOINT ["node", "/app/dist/commands/cli.js"]
CMD ["start"]

# Last, since each build has others.
ARG NODE_IMAGE VERSION=1.0.0 REVISION CREATED
LABEL org.opencontainers.image.title="outfit-gateway" \
      org.opencontainers.image.description="A GraphQL gateway that also serves a legacy REST listing, byte for byte." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${NODE_IMAGE}"
