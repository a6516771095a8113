# Every target sets up what it needs itself. A fresh machine has Python >= 3.11 with venv, git and make.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Without cached bytecode, each of the hundreds of processes of the tests compiles its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install run test test-all browser pictures conformance fuzz fuzz-rules fuzz-inputs fuzz-index fuzz-events fuzz-reviews claims placing removals readers policies e2e e2e-cluster e2e-apart e2e-scan e2e-attacks e2e-no-loss no-loss e2e-steady e2e-release e2e-cert-manager alerts image image-test image-lock dist attack attack-short transcript soak soak-short bench bench-peers lint prose site size docs lock FORCE

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

install: $(READY)  ## a virtual environment with the locked dependencies

$(READY): requirements.lock requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' || { echo "evenspread needs Python 3.11 or later with venv; set PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "installing the locked dependencies into $(VENV)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: $(READY)  ## start the webhook with an example cluster and print three commands to try
	@$(BIN)/evenspread webhook --example

test: $(READY)  ## the offline suite without its slow tests: under two minutes (Python only)
	@$(BIN)/python -m pytest -n 3 -m "not slow"  # a third of the time is waiting, so three processes fit two cores

test-all: $(READY)  ## the whole offline suite and its coverage of the core, as CI runs it (Python only)
	@COVER_CORE=1 $(BIN)/python -m pytest -n 3
	@$(BIN)/python -m pytest -q tests/test_bench.py  # without probes, since it counts bytecodes

browser: $(READY)  ## the console in a real browser (needs chromium in PATH: Debian's package)
	@$(BIN)/python -m pytest -m browser tests/browser -q --no-cov

pictures: $(READY)  ## the pictures of docs/console.md, taken anew (needs chromium in PATH)
	@PYTHONPATH=tests $(BIN)/python -m browser.pictures docs/pictures

SEED ?= $(shell date +%s)
RELEASE ?= 1.37
EACH ?=
conformance: $(READY)  ## Kubernetes' own code on fresh cases: verdicts as ours, pods with defaults accepted; RELEASE=1.34 SEED=n EACH=10000 (needs Go)
	@conformance/fresh.sh $(SEED) $(CURDIR)/$(BIN)/evenspread $(CURDIR)/$(BIN)/python $(RELEASE) $(EACH)

dist/wheel: $(READY) FORCE
	@rm -rf $@ && $(BIN)/python -m hatchling build -t wheel -d $@ >/dev/null

image: dist/wheel  ## the container image without a container engine, into dist/image; image/run.py runs it
	@$(BIN)/python -m image.build dist/wheel/*.whl dist/image

image-test: image  ## what is in the image, and the webhook out of its own files
	@$(BIN)/python -m pytest -m e2e tests/e2e/test_image.py -q

dist: image  ## all that a release publishes, with checksums, into dist/release
	@release/make.sh

image-lock:  ## take today's Debian packages for the image (needs apt)
	@image/lock.sh >image/packages.lock.new && mv image/packages.lock.new image/packages.lock

COUNT ?= 2500
fuzz: $(READY)  ## fresh verdicts on 100,000 nodes and more, odd objects among them; SEED=n COUNT=n (needs Go)
	@conformance/fuzz.sh $(SEED) $(COUNT) $(CURDIR)/$(BIN)/evenspread $(CURDIR)/$(BIN)/python

FOR ?= 60
fuzz-rules: $(READY)  ## random objects beside random clusters, for FOR=n seconds: whatever they hold, no rule and no fix raises; SEED=n
	@PYTHONPATH=tests $(BIN)/python -m properties.anything $(SEED) $(FOR)

fuzz-events: $(READY)  ## random events of every kind, for FOR=n seconds: an index that took them answers reviews as a new one; SEED=n
	@PYTHONPATH=tests $(BIN)/python -m properties.churn $(SEED) $(FOR)

fuzz-reviews: $(READY)  ## random AdmissionReviews of every kind, for FOR=n seconds: each has an answer, no rule raises, patches repeat to nothing; SEED=n
	@PYTHONPATH=tests:. $(BIN)/python -m properties.bodies $(SEED) $(FOR)

fuzz-inputs: $(READY)  ## the kept inputs of tests/fuzzing and changes of them, for FOR=n seconds: reviews, selectors, policies, snapshots; SEED=n
	@PYTHONPATH=tests:. $(BIN)/python -m fuzzing $(SEED) $(FOR)

fuzz-index: $(READY)  ## COUNT=n events of objects with any field at its extreme: the index leaves none out; SEED=n
	@PYTHONPATH=tests:. $(BIN)/python -m fuzzing.extremes $(SEED) $(COUNT)

claims: $(READY)  ## every claim about a random cluster, every fix and silence, against Kubernetes' own filters; SEED=n COUNT=n (needs Go)
	@conformance/claims.sh $(SEED) $(COUNT) $(CURDIR)/$(BIN)/python

placing: $(READY)  ## what our search of all orders says of random whole workloads, against Kubernetes' own filters; SEED=n COUNT=n (needs Go)
	@conformance/placing.sh $(SEED) $(COUNT) $(CURDIR)/$(BIN)/python

removals: $(READY)  ## the order in which controllers remove random pods, against their own code; RELEASE=1.34 SEED=n COUNT=n (needs Go)
	@conformance/removals.sh $(SEED) $(COUNT) $(CURDIR)/$(BIN)/python $(RELEASE)

policies: $(READY)  ## what the expressions of compiled admission policies cost at most, by the API server's own code (needs Go)
	@conformance/policies.sh $(CURDIR)/$(BIN)/python

readers: $(READY)  ## how Karpenter and the descheduler read random constraints, beside kube-scheduler; SEED=n EACH=n (needs Go)
	@conformance/readers.sh $(SEED) $(or $(EACH),100) $(CURDIR)/$(BIN)/python

e2e: $(READY) image  ## a real API server around the webhook (needs Go; the first build takes ten minutes)
	@tests/e2e/controlplane/build.sh >/dev/null
	@$(MAKE) --no-print-directory --jobs 5 --keep-going e2e-cluster e2e-apart e2e-scan e2e-attacks e2e-no-loss
	@$(MAKE) --no-print-directory e2e-steady
	@$(MAKE) --no-print-directory soak-short
	@$(MAKE) --no-print-directory attack-short

# Hundreds of processes share two cores there, so a failed test runs once more, and the summary names it.
TWICE := -p rerunfailures --reruns 1 -rR
ATTACKS := tests/e2e/test_hostile.py
APART := tests/e2e/test_image.py tests/e2e/test_release.py tests/e2e/test_in_ci.py tests/e2e/test_outage.py tests/e2e/test_verdicts.py tests/e2e/test_callers.py tests/e2e/test_group_plans.py tests/e2e/test_admission_policies.py tests/e2e/test_mutating_policies.py
e2e-cluster: $(READY)
	@tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest -m e2e tests/e2e $(foreach file,$(APART) $(SCAN) $(ATTACKS) $(NO_LOSS) $(STEADY) $(SOAK) $(TOWN) $(CERT_MANAGER) $(ALERTS) $(OLDER),--ignore $(file)) $(TWICE) -v --durations 5

# Beside the rest: each has a control plane of its own, and waits for it most of the time.
e2e-apart: $(READY)
	@$(BIN)/python -m pytest -m e2e $(APART) $(TWICE) -q

# Beside the rest: what waits for scans, and for the scheduler and the garbage collector to come to rest.
SCAN := tests/e2e/test_scan.py tests/e2e/test_scan_faults.py tests/e2e/test_reports.py tests/e2e/test_placement.py tests/e2e/test_scale_in.py tests/e2e/test_scale_in_faults.py tests/e2e/test_skew_fix.py tests/e2e/test_volumes.py
e2e-scan: $(READY)
	@$(BIN)/python -m pytest -m e2e $(SCAN) $(TWICE) -q --durations 5

# Beside the rest: it installs and changes the release while somebody writes, and waits for pods most of the time.
NO_LOSS := tests/e2e/test_no_loss.py
e2e-no-loss: $(READY)
	@tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest -m e2e $(NO_LOSS) $(TWICE) -q --durations 5

# A single test of these may take hours, so none is ended after ten minutes.
LONG := --override-ini faulthandler_timeout=0
no-loss: $(READY) image  ## writes lost in every step of install.md and every switch, under both failure policies (needs Go)
	@tests/e2e/controlplane/build.sh >/dev/null
	@NO_LOSS=full tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest $(LONG) -m e2e $(NO_LOSS) -q

# Beside the rest: it needs no cluster, and waits for most of three minutes.
e2e-attacks: $(READY)
	@$(BIN)/python -m pytest -m e2e $(ATTACKS) -q

# After those, by itself: certificates that live for seconds, and replicas that end, while no call may fail.
STEADY := tests/e2e/test_certificates.py tests/e2e/test_restarts.py tests/e2e/test_upgrade.py tests/e2e/test_static_policies.py tests/e2e/test_hang.py
e2e-steady: $(READY) image
	@tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest -m e2e $(STEADY) -q --durations 5

# Not in CI: the control plane of an older release takes some minutes to build.
OLDER := tests/e2e/test_older_release.py
e2e-release: $(READY)  ## denials, refusals and 100 random pods at a control plane of an older release: RELEASE=1.34 (needs Go)
	@tests/e2e/controlplane/older.sh $(RELEASE) >/dev/null
	@EVENSPREAD_RELEASE=$(RELEASE) EVENSPREAD_PODS=100 tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest -m e2e $(OLDER) tests/e2e/test_denials.py tests/e2e/test_random.py tests/e2e/test_verdicts.py tests/e2e/test_admission_policies.py tests/e2e/test_mutating_policies.py -q

# Not in CI: cert-manager takes some minutes to build.
CERT_MANAGER := tests/e2e/test_cert_manager.py
e2e-cert-manager: $(READY) image  ## cert-manager's own controllers issue the chart's certificate (needs Go; the first build takes minutes)
	@tests/e2e/controlplane/build.sh >/dev/null
	@tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest -m e2e $(CERT_MANAGER) -q

ALERTS := tests/e2e/test_alerts.py
alerts: $(READY)  ## the chart's alerts as Prometheus evaluates them (needs promtool in PATH: Debian's package prometheus)
	@$(BIN)/python -m pytest -m e2e $(ALERTS) -q

# After all others, by itself: it measures how long others wait while somebody attacks.
TOWN := tests/e2e/test_attacks.py
attack-short: $(READY) image
	@tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest -m e2e $(TOWN) -q --tb line

transcript: $(READY) image  ## install the chart, throw its switches, take it out; a Redis cluster from its ConfigMap on; writes docs/first-install.md and docs/redis-*.md (needs Go)
	@tests/e2e/controlplane/build.sh >/dev/null
	@tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest $(LONG) -m e2e tests/e2e/first_install.py -q
	@tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest $(LONG) -m e2e tests/e2e/redis_walk.py -q

attack: $(READY) image  ## everything hostile that is known, for long, beside a large cluster; prints a table (needs Go, and root or cgroups)
	@tests/e2e/controlplane/build.sh >/dev/null
	@ATTACK=full tests/e2e/controlplane/netns.sh $(BIN)/python -m pytest $(LONG) -m e2e $(TOWN) -q --tb line

# By itself: every request that fails or is late counts.
SOAK := tests/e2e/test_soak.py
soak-short: $(READY)
	@$(BIN)/python -m pytest -m e2e $(SOAK) -q --tb line

soak: $(READY)  ## 200 reviews a second while certificates, policies, clocks and processes change, for long; prints a table (needs Go)
	@SOAK=full $(BIN)/python -m pytest $(LONG) -m e2e $(SOAK) -q --tb line

bench: $(READY)  ## every figure with its goal in one table, in minutes (rows beside Go and kube-scheduler need Go and taskset)
	@$(BIN)/python -m bench

# Not in CI: Gatekeeper and Kyverno take some minutes to build.
bench-peers: $(READY)  ## pod creations with evenspread, Gatekeeper and Kyverno in turns; prints a table (needs Go; the first build takes half an hour or more)
	@tests/e2e/controlplane/build.sh >/dev/null
	@PYTHONPATH=tests $(BIN)/python -m bench.peers

lint: $(READY)  ## ruff, formatting, mypy strict, layers (each proven by a deliberate break), dead code, spelling, plain English
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tests/prove_layers.py
	@$(BIN)/vulture
	@git ls-files '*.md' '*.py' '*.yaml' '*.sh' '*.go' Makefile | xargs $(BIN)/codespell
	@$(BIN)/python tools/prose.py --check

prose: $(READY)  ## figures of the English in docs, docstrings and comments; better figures become the limits of make lint
	@$(BIN)/python tools/prose.py --lower --worst 20

site: $(READY)  ## the documentation as a site in dist/site, without network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

size:  ## how many lines of Python the product has
	@git ls-files 'webhook/*.py' | xargs cat | wc -l

docs: $(READY)  ## write the references that come from the code (tests say when they are out of date)
	@$(BIN)/python tests/config/reference.py
	@PYTHONPATH=tests $(BIN)/python tests/core/api/releases.py
	@PYTHONPATH=tests $(BIN)/python tests/core/scheduler/left_out.py
	@PYTHONPATH=tests $(BIN)/python tests/core/rules/pages.py
	@$(BIN)/python tests/cli/reference.py
	@$(BIN)/python tests/chart/reference.py
	@PYTHONPATH=tests $(BIN)/python tests/controller/reference.py
	@$(BIN)/python tests/cli/schemas.py
	@PYTHONPATH=tests $(BIN)/python tests/cli/said.py
	@PYTHONPATH=tests $(BIN)/python tests/readme.py
	@PYTHONPATH=tests $(BIN)/python tests/examples.py
	@PYTHONPATH=tests $(BIN)/python tests/core/groups/vectors.py

lock: $(READY)  ## resolve the dependencies anew
	@$(BIN)/uv pip compile --quiet --upgrade --no-strip-extras --no-header --generate-hashes --universal --python-version 3.11 --extra webhook pyproject.toml --output-file requirements.lock
	@$(BIN)/uv pip compile --quiet --upgrade --no-strip-extras --no-header --generate-hashes --universal --python-version 3.11 --group dev --constraint requirements.lock --output-file requirements-dev.lock
