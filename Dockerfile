FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
# Takes the place of packages that nothing needs.
COPY .ci/unused .ci/unused
# Installing would also build, for which the sources are not here yet.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run package && mv package/outfit-gateway-*/ /app

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 DATA_DIR=/data
WORKDIR /app
COPY --from=build /app ./
RUN install -d -o node -g node /data
USER node
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health/live').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Not by npm, which does not pass SIGTERM on in time.
CMD ["node", "dist/commands/cli.js", "start"]
