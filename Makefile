# Headrace. `make` alone lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python
PYTEST := $(PY) -m pytest

.PHONY: help
help: ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  \033[1m%-18s\033[0m %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Make .venv and the jar from pinned, hashed requirements (done by every other target)
	@bash scripts/setup.sh

.PHONY: demo
demo: setup ## See a real stream job managed by Headrace on this machine (WATCH=1 keeps it running)
	@$(PY) examples/demo/demo.py $(if $(WATCH),--watch)

.PHONY: lint
lint: setup ## ruff, types, import contracts, stale generated files
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	.venv/bin/basedpyright
	.venv/bin/lint-imports
	$(PY) scripts/generate.py --check

.PHONY: test
test: lint test-unit test-sim test-spark ## Everything that needs only Python and Java (about 20 minutes)

.PHONY: test-unit
test-unit: setup ## Pure rules, in seconds
	$(PYTEST) tests/unit tests/cluster -m 'not full'

.PHONY: test-sim
test-sim: setup ## The lifecycle against a fake substrate: faults, crashes, hypothesis
	$(PYTEST) tests/sim -m 'not full'

.PHONY: test-sim-full
test-sim-full: setup ## The long rest of test-sim: a kill after every write, every fault, long lives
	$(PYTEST) tests/sim

.PHONY: test-spark
test-spark: setup ## Real Spark on this machine: harness, checkpoints, headrace dev, demo
	$(PYTEST) tests/spark -m 'not full'

.PHONY: test-spark-full
test-spark-full: setup ## The long rest of test-spark (needs Go: the S3 servers are compiled into the cache)
	$(PY) -m tests.cluster build s3
	$(PYTEST) tests/spark

.PHONY: test-apiserver
test-apiserver: setup ## The CRDs on a real API server and etcd (compiled into the cache the first time)
	$(PY) -m tests.cluster build apiserver
	$(PYTEST) tests/apiserver -m 'not full'

.PHONY: test-alerts
test-alerts: setup ## The alerts and the metrics in a real Prometheus, the chart in Helm (both kept in the cache)
	$(PY) -m tests.cluster build helm
	$(PYTEST) tests/prometheus -m 'not full'

.PHONY: test-e2e
test-e2e: setup ## A real cluster with Spark pods, Kafka and S3 (needs root: see docs/contributing/cluster.md)
	$(PY) -m tests.e2e
	$(PYTEST) tests/e2e -m 'not full'

.PHONY: test-cluster
test-cluster: test-alerts test-apiserver test-e2e ## The core of the tiers that need a set-up

.PHONY: test-e2e-full
test-e2e-full: setup ## The long rest of the cluster tiers, the cluster's own tests included
	$(PY) -m tests.e2e
	$(PYTEST) tests/cluster tests/prometheus tests/apiserver tests/e2e

.PHONY: setup-cluster
setup-cluster: setup ## As root, once: the Debian packages that the cluster and the images need
	$(PY) -m tests.cluster setup

.PHONY: cluster
cluster: setup ## Start a real Kubernetes on this machine, or reuse the one that runs (NODES=1, HEADRACE_CLUSTER=kind)
	$(PY) -m tests.cluster up $(if $(NODES),--nodes $(NODES))

.PHONY: cluster-status
cluster-status: setup ## What runs on it
	$(PY) -m tests.cluster status

.PHONY: cluster-down
cluster-down: setup ## Stop it; leaves nothing but the cache, and lists what was looked for
	$(PY) -m tests.cluster down

.PHONY: images
images: setup ## Build the operator's and the Spark image, with Docker or with buildah
	$(PY) images/build.py

.PHONY: generate
generate: setup ## Write crds/, docs/reference/, the alerts and their runbook from operator/headrace
	$(PY) scripts/generate.py

.PHONY: lock
lock: ## Refresh requirements/*.txt (hashes, no index URLs)
	@bash scripts/lock.sh

.PHONY: wheel
wheel: setup ## Build the distribution, jar inside, into dist/
	$(PY) -m hatchling build -t wheel

.PHONY: bench
bench: setup ## Speed, as ratios in one run; one JSON line per figure, results in bench/results/
	@for bench in dev checkpoint savepoint; do $(PY) bench/$$bench.py; done

.PHONY: bench-autoscale
bench-autoscale: setup ## The autoscaler against its peers in simulated time (TRACES=dir; default ../shared/traces)
	@nice $(PY) -m bench.autoscale $(if $(TRACES),--traces $(TRACES))

.PHONY: bench-soak
bench-soak: setup ## A compressed day on the cluster beside the simulator's prediction: 25 minutes, as root
	@$(PY) -m bench.soak

.PHONY: bench-cluster
bench-cluster: setup ## Starts of the cluster, image sizes (COLD=1: also with nothing compiled); takes a running cluster down
	@$(PY) bench/cluster.py $(if $(COLD),--cold)

.PHONY: bench-submit
bench-submit: setup ## What a StreamJob costs the operator, on a real API server without pods
	@$(PY) bench/submit.py

.PHONY: bench-upgrade
bench-upgrade: setup ## The gap of warm, cold and delete-and-recreate upgrades, on a real cluster (needs root)
	$(PY) -m tests.e2e
	@$(PY) bench/upgrade.py

.PHONY: clean
clean: ## Remove what the targets made in this checkout (caches outside it stay)
	rm -rf .venv .headrace dist build bench/results .pytest_cache .ruff_cache .hypothesis .import_linter_cache jobs/headrace_jobs/jars
	find . -name __pycache__ -prune -exec rm -rf {} +
