# Headrace's two images. Everything but Debian's packages is staged beforehand, pinned and verified, into
# build/images by `python images/build.py`, which also runs this file, with Docker or with buildah.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS python
RUN apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends python3 tzdata >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
# A volume may be mounted read-only over nothing: no Python here ever writes beside its sources.
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

# --- the operator; it also carries the harness that its init container brings into a job's image -----------
FROM python AS operator
RUN echo 'headrace:x:65532:65532::/tmp:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'headrace:x:65532:' >> /etc/group
COPY build/images/operator/ /usr/local/lib/python3.11/dist-packages/
COPY build/images/carried/ /opt/headrace/carried/
COPY build/images/carried-connectors/ /opt/headrace/carried/connectors/
# unchecked-hash: the files never change, so no start needs to compare their times.
RUN python3 -m compileall -q --invalidation-mode unchecked-hash \
    /usr/local/lib/python3.11/dist-packages /opt/headrace/carried
# The code last: a change of it makes only small layers.
COPY images/carry.sh /opt/headrace/carry.sh
COPY build/images/code/headrace/ /usr/local/lib/python3.11/dist-packages/headrace/
COPY build/images/code/headrace_jobs/ /opt/headrace/carried/headrace_jobs/
RUN python3 -m compileall -q --invalidation-mode unchecked-hash \
    /usr/local/lib/python3.11/dist-packages/headrace /opt/headrace/carried/headrace_jobs
USER 65532:65532
ENTRYPOINT ["python3", "-m", "headrace.runtime"]

# --- the default image of a job: Spark, Python, and the connectors for S3 and Kafka ------------------------
FROM python AS spark
# The JRE's set-up scripts write to a directory that a slim image does not have.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends openjdk-17-jre-headless >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
    && echo 'spark:x:185:185::/opt/work:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'spark:x:185:' >> /etc/group \
    && mkdir -p /opt/work /opt/app \
    && chown 185:185 /opt/work \
    && ln -s /usr/local/lib/python3.11/dist-packages/pyspark /opt/spark
COPY build/images/spark/ /usr/local/lib/python3.11/dist-packages/
COPY build/images/connectors/ /usr/local/lib/python3.11/dist-packages/pyspark/jars/
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib/python3.11/dist-packages
COPY images/entrypoint.sh images/decom.sh /opt/
ENV SPARK_HOME=/opt/spark PYSPARK_PYTHON=python3
WORKDIR /opt/work
USER 185:185
ENTRYPOINT ["/opt/entrypoint.sh"]
