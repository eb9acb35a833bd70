# Builds an image that runs lifepod in a container, for macOS, Windows and CI. The command that starts it, and the reason for each of its
# options, are in README.md, "In a container".

FROM debian:trixie-slim AS build
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates npm
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm install --no-save --no-audit --no-fund --loglevel=error
COPY . .
RUN npm run generate && bash scripts/build.sh && npm pack --ignore-scripts
# The package uses the Node.js next to it: that of the clone.
RUN npm install --global --prefix=/opt/lifepod --omit=dev --no-audit --no-fund --loglevel=error ./lifepod-*.tgz \
    && install node_modules/node/bin/node /opt/lifepod/bin/node

FROM debian:trixie-slim
# catatonit is PID 1 of the container and the program of the sandbox image, busybox-static provides an image where no registry is
# reachable, and kubernetes-client is kubectl. The other packages are those that lifepod needs on every machine.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        busybox-static ca-certificates catatonit conntrack containerd containernetworking-plugins \
        iproute2 kubernetes-client mount nftables runc util-linux \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/lifepod /usr/local
ENV KUBECONFIG=/var/lib/lifepod/kubeconfig
# containerd's snapshots are overlays, which cannot lie on the overlay of the container itself.
VOLUME /var/lib/lifepod
EXPOSE 6443
HEALTHCHECK --start-period=60s --timeout=10s \
    CMD ["kubectl", "wait", "--for=condition=Ready", "node", "--all", "--timeout=5s"]
# catatonit removes zombies and forwards signals. SIGTERM, which docker stop sends, terminates the Pods before the container ends.
ENTRYPOINT ["catatonit", "--", "lifepod", "up", "--bind-address", "0.0.0.0", "--shutdown-on-stop"]
