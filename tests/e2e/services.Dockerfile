# What the tests need beside Headrace: a Kafka broker, an S3 server, and tools to look into both. Not a product image.
ARG SPARK_IMAGE
FROM ${SPARK_IMAGE}
COPY kafka/ /opt/kafka/
COPY s3-server /opt/s3-server
