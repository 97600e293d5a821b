# The image of a job that writes to PostgreSQL: the default one, with a driver for Python.
ARG SPARK_IMAGE
FROM ${SPARK_IMAGE}
USER root
RUN apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends python3-psycopg >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
USER 185:185
