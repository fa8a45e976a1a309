# groundfault with the workbench, the PostgreSQL ledger and DuckDB. It runs as a user without rights and
# needs no writable file system but /tmp:
#
#   docker build -t groundfault .
#   docker run --rm --read-only --tmpfs /tmp --user "$(id -u)" -v "$PWD:/data:ro" -p 127.0.0.1:8000:8000 groundfault
#
# Without a command it serves the workbench of /data/report. Reports are private files: run it as their owner.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/groundfault && /opt/groundfault/bin/pip install --no-cache-dir '.[web,postgres,duckdb]'

FROM python:3.12-slim
COPY --from=build /opt/groundfault /opt/groundfault
ENV PATH=/opt/groundfault/bin:$PATH HOME=/tmp NUMBA_CACHE_DIR=/tmp/numba PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["python", "-c", "import urllib.request as u; u.urlopen(u.Request('http://127.0.0.1:8000/', headers={'Accept': 'text/html'}), timeout=3)"]
ENTRYPOINT ["groundfault"]
CMD ["open", "report", "--host", "0.0.0.0", "--port", "8000", "--no-browser"]
