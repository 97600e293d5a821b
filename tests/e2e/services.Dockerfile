# What the tests need beside Headrace: a Kafka broker, an S3 server, PostgreSQL, and tools to look into them. Not a
# product image. With a PostgreSQL driver for Python, it can also be a job's image: see ledger.Dockerfile.
ARG SPARK_IMAGE
FROM ${SPARK_IMAGE}
USER root
# Without the database that Debian makes at once: it would lie in the image, under a user that no pod has.
RUN apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends postgresql-common >/dev/null \
    && sed -i 's/^#create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
    && apt-get install -qq -y --no-install-recommends postgresql-15 python3-psycopg >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
USER 185:185
COPY kafka/ /opt/kafka/
COPY s3-server /opt/s3-server
