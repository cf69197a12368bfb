# MCP over stdio: docker run --rm --interactive --volume standards:/data standards-mcp
# The release job passes the base image with its digest: --build-arg BASE=python:3.13-slim@sha256:...
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
# Names of plugins and of other extras, such as "knowledge memory redis otel".
ARG PLUGINS="prompts resources filters service"
WORKDIR /source
COPY pyproject.toml uv.lock README.md LICENSE NOTICE ./
COPY standards_mcp standards_mcp
COPY plugins plugins
RUN pip install --no-cache-dir uv==0.13.9
# The lock file has the versions and the hashes of everything that is installed.
RUN for name in $PLUGINS; do set -- "$@" --extra "$name"; done \
    && UV_PROJECT_ENVIRONMENT=/opt/standards-mcp \
    uv sync --frozen --no-cache --no-dev --no-editable --compile-bytecode "$@"

FROM ${BASE}
LABEL io.modelcontextprotocol.server.name="io.github.standards-mcp/standards-mcp"
# A numeric id lets Kubernetes verify `runAsNonRoot`.
RUN useradd --uid 10001 --create-home standards \
    && install --directory --owner=standards /data
COPY --from=build /opt/standards-mcp /opt/standards-mcp
ENV PATH=/opt/standards-mcp/bin:$PATH \
    STANDARDS_MCP_PLUGINS__CATALOG__PATH=/data/catalog \
    STANDARDS_MCP_STATE_DIR=/data/state
USER 10001
VOLUME /data
# A standards-mcp.toml that is mounted here is found.
WORKDIR /home/standards
HEALTHCHECK --interval=5m --timeout=30s --start-period=30s \
    CMD ["standards-mcp", "plugins", "check"]
ENTRYPOINT ["standards-mcp"]
CMD ["serve"]
