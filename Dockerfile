# MCP over stdio: docker run --rm --interactive --volume standards:/data standards-mcp
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY standards_mcp standards_mcp
COPY plugins plugins
RUN python -m venv /opt/standards-mcp \
    && /opt/standards-mcp/bin/pip install --no-cache-dir .

FROM python:3.13-slim
# The id is a number, so that a cluster can see that it is not root's.
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
