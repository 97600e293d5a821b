"""A run file as the operator writes it."""

GOOD = {
    "job": {"namespace": "shop", "name": "orders", "uid": "j-1"},
    "run": 3,
    "attempt": 2,
    "epoch": 7,
    "uid": "a-1",
    "store": "s3://bucket/shop/orders/j-1",
    "application": {"file": "/app/job.py", "module": None, "args": ["--x"], "pyFiles": []},
    "sparkConf": {"spark.master": "local[2]"},
    "trigger": {"mode": "Continuous", "intervalSeconds": 2},
    "kafka": None,
    "start": None,
    "agent": {"host": "127.0.0.1", "port": 0, "tokenFile": None},
    "terminationMessagePath": "/tmp/t.json",
    "processFile": "/tmp/p.json",
    "drainTimeoutSeconds": 120,
    "watchParent": True,
    "watchdog": {"batchTimeoutSeconds": 1800, "action": "Restart"},
    "repartition": None,
    "mode": "active",
    "rehearsal": None,
}

REHEARSAL = {
    **GOOD,
    "run": 4,
    "attempt": 1,
    "epoch": 0,
    "mode": "rehearse",
    "rehearsal": {
        "fromRun": 3,
        "batches": 3,
        "timeLimitSeconds": 600,
        "callForeachBatch": False,
        "stateCompatible": False,
        "standbySeconds": 1800,
    },
}
