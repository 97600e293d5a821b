# A Spark image that has never heard of Headrace: Spark 4.3.0 as it comes from the Python registry, Java, and the
# two scripts that every Spark image for Kubernetes has under these names. No S3 connector, no Kafka connector.
ARG BASE
FROM ${BASE}
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends python3 openjdk-17-jre-headless >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
    && echo 'spark:x:185:185::/opt/work:/usr/sbin/nologin' >> /etc/passwd \
    && mkdir -p /opt/work \
    && ln -s /usr/local/lib/python3.11/dist-packages/pyspark /opt/spark
COPY packages/ /usr/local/lib/python3.11/dist-packages/
COPY entrypoint.sh decom.sh /opt/
ENV SPARK_HOME=/opt/spark
USER 185:185
ENTRYPOINT ["/opt/entrypoint.sh"]
