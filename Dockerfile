# Serves the page in the browser: docs/for-chemists/docker.md.
FROM python:3.12-slim

# RDKit draws molecules with these libraries.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libexpat1 libxext6 libxrender1 \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml setup.cfg README.md LICENSE /source/
COPY graphormer_sepnorm /source/graphormer_sepnorm
# With the CPU build of PyTorch: the default one for Linux includes CUDA.
RUN pip install --no-cache-dir "/source[web,excel,parquet]" --extra-index-url https://download.pytorch.org/whl/cpu \
    && rm -r /source

# The cache of an unprivileged user, which a volume can keep.
RUN useradd --create-home user && install --directory --owner=user --group=user /home/user/.cache /data
USER user
WORKDIR /data

EXPOSE 8000
# Of the page: a container of another command is never healthy.
HEALTHCHECK --start-period=2m --timeout=30s CMD ["python", "-c", \
    "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=25)"]
ENTRYPOINT ["graphormer-sepnorm"]
CMD ["serve", "admet", "--host", "0.0.0.0"]
