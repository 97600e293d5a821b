"""Revenue per 5-second window, from orders that arrive late and out of order. Plain PySpark."""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("--orders", required=True)
parser.add_argument("--results", required=True)
args = parser.parse_args()

spark = SparkSession.builder.appName("orders-revenue").getOrCreate()

orders = (
    spark.readStream.schema("id LONG, product STRING, amount_cents LONG, ordered_at TIMESTAMP")
    .json(args.orders)
    .withWatermark("ordered_at", "10 seconds")
)

revenue = (
    orders.groupBy(F.window("ordered_at", "5 seconds"))
    .agg(
        F.count("*").alias("orders"),
        F.sum("amount_cents").alias("revenue_cents"),
        # Which orders were counted: what the proof at the end of the demo is made from.
        F.sort_array(F.collect_list("id")).alias("order_ids"),
    )
    .select("window.start", "orders", "revenue_cents", "order_ids")
)

# The demo saves this file again with this line in effect: a change of a running job.
# revenue = revenue.withColumn("average_cents", F.round(F.col("revenue_cents") / F.col("orders")))

query = revenue.writeStream.queryName("revenue").outputMode("append").format("json").start(args.results)
query.awaitTermination()
