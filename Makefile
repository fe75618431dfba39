# Ensign. `make` or `make help` lists what can be made.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Go and pip keep their caches there. Where it is not set, a shell knows it from the account.
export HOME ?= $(shell echo ~)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The image that docker-build makes, docker-push pushes and deploy runs.
IMG ?= ensign:dev
BASE_IMG ?= ensign-base
PLATFORMS ?= linux/amd64,linux/arm64
CONTAINER_TOOL ?= docker
# The kubectl for install, deploy and their counterparts.
KUBECTL ?= $(if $(wildcard bin/controlplane/kubectl),bin/controlplane/kubectl,kubectl)

OUT ?= bin/manager
# Where bundle puts its files.
DIST ?= dist

# How long each fuzz target runs.
FUZZTIME ?= 20s

# Everything but the race detector builds without cgo, so that packages are
# compiled once for all programs and no C compiler is needed.
export CGO_ENABLED ?= 0

##@ Start here

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n%s\n' \
	  'The first demo or test also builds Kubernetes and installs Ansible: 8 minutes on two fast cores, 15 on slow ones; a test also Helm, 3 to 6 more. Builds say how far they are.' \
	  'Variables: IMG=registry/name:tag  BASE_IMG=registry/name:tag  KUBECONFIG=path  KUBECTL=path  CONTAINER_TOOL=docker'

.PHONY: demo
demo: ## Guided tour on a cluster of its own (KEEP=1: stay up; DEMO_CLUSTER=current: KUBECONFIG's cluster).
	@DEMO_CLUSTER=$(DEMO_CLUSTER) KEEP=$(KEEP) hack/demo/programs.sh
	@exec hack/demo/demo.sh

.PHONY: devcluster
devcluster: controlplane bin/devcluster ## Run a local cluster in the foreground (ARGS='--data DIR --kubeconfig PATH').
	@exec bin/devcluster $(ARGS)

# Go decides whether a program is up to date; make does not know what it is made of.
.PHONY: bin/devcluster bin/devmariadb bin/molecule bin/bench
bin/devcluster bin/devmariadb bin/molecule bin/bench: bin/%:
	@hack/compile/compile.sh $* -buildvcs=false -o $@ ./hack/$*

.PHONY: bin/faults
bin/faults:
	@hack/compile/compile.sh faults -buildvcs=false -o $@ ./test/faults/run

.PHONY: devmariadb
devmariadb: mariadb bin/devmariadb ## Run a local MariaDB server in the foreground (ARGS='--login FILE').
	@exec bin/devmariadb $(ARGS)

.PHONY: node-up
node-up: controlplane ## Bring a real Kubernetes node up on this machine, as root (Debian's packages: hack/node/check.sh).
	@hack/node/node.sh up

.PHONY: node-load
node-load: ## Build an operator's project FROM the base image, and load it into the node (DIR=../shop; IMG=name:tag).
	@hack/node/image.sh project '$(DIR)' $(if $(filter-out file,$(origin IMG)),'$(IMG)')

.PHONY: node-down
node-down: ## Take the node down again.
	@hack/node/node.sh down

##@ Build

.PHONY: build
build: manager ensign ## Build bin/manager, and ensign and chart-exec beside it (OUT=path puts them elsewhere).
	@hack/compile/compile.sh chart-exec -buildvcs=false -ldflags '-s -w' -o $(dir $(OUT))chart-exec ./cmd/chart-exec

link = -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X github.com/ensign-operator/ensign/internal/docslink.version=$(VERSION)'

# The manager alone, for content that is no chart.
.PHONY: manager
manager:
	@hack/compile/compile.sh manager -buildvcs=false $(link) -o $(OUT) ./cmd/manager

.PHONY: ensign
ensign:
	@hack/compile/compile.sh ensign -buildvcs=false $(link) -o $(dir $(OUT))ensign ./cmd/ensign

# Where install-cli puts the names of ensign. The programs lie side by side in ../lib/ensign, where ensign finds the others.
PREFIX ?= $(HOME)/.local/bin
lib = $(PREFIX)/../lib/ensign

.PHONY: install-cli
install-cli: build ## Install the program ensign into PREFIX, also as the kubectl plugin "kubectl ensign".
	@install -d '$(PREFIX)' '$(lib)'
	@install -m 0755 $(OUT) $(addprefix $(dir $(OUT)),ensign chart-exec) '$(lib)'
	@ln -sf ../lib/ensign/ensign '$(PREFIX)/ensign'
	@ln -sf ensign '$(PREFIX)/kubectl-ensign'
	@ln -sf ensign '$(PREFIX)/kubectl_complete-ensign'
	@printf '%s is installed, and for kubectl\n' '$(PREFIX)/ensign'

.PHONY: python
python: ## Install Ansible and its tools into .venv (about 1 minute, once).
	@hack/python.sh
	@hack/python/link_collections.sh

.PHONY: python-matrix
python-matrix: python ## Install the other versions of ansible-core that test-all runs on (20 s, once).
	@hack/python/matrix.sh

.PHONY: helm
helm: ## Build helm, for a test, into bin/tools (3 to 6 minutes on two cores, once).
	@hack/tools/build.sh helm

.PHONY: kubebuilder
kubebuilder: ## Build kubebuilder and controller-gen, for a test, into bin/tools (a minute, once).
	@hack/tools/build.sh kubebuilder
	@hack/tools/build.sh controller-gen

.PHONY: promtool
promtool: ## Build promtool, for a test of the alerts, into bin/tools (two or three minutes on two cores, once).
	@hack/tools/build.sh promtool

.PHONY: prometheus
prometheus: ## Build Prometheus, for a test of test-all, into bin/tools (a minute more than promtool, once).
	@hack/tools/build.sh prometheus

.PHONY: mariadb
mariadb: ## Put MariaDB's programs that are not on PATH into .dev/mariadb, without root (Debian's packages, 5 s, once).
	@hack/mariadb.sh

.PHONY: controlplane
controlplane: ## Build Kubernetes' servers that are not in KUBEBUILDER_ASSETS or PATH into bin/controlplane (5 to 12 minutes on two cores, once).
	@hack/controlplane/build.sh

##@ Check

.PHONY: test
test: build controlplane helm kubebuilder promtool mariadb python ## Unit tests, then the suites on a real control plane with real Ansible.
	@hack/test.sh unit collections suites

.PHONY: test-unit
test-unit: ## Unit tests alone.
	@hack/test.sh unit

.PHONY: test-long
test-long: build controlplane helm kubebuilder mariadb python ## The specs that `make test` leaves out because they take long (UNTIL=seconds: begins no suite later).
	@hack/test.sh long

.PHONY: test-all
test-all: build controlplane helm kubebuilder promtool prometheus mariadb python python-matrix ## What `make test` runs, the tests that take long (build tag "long"), molecule, and test-node and test-olm where the machine can.
	@TAGS=long hack/test.sh unit collections suites cold jobs
	@$(MAKE) molecule
	@LONG=1 hack/node/test.sh || (($$? == 77))
	@hack/olm/test.sh || (($$? == 77))

.PHONY: test-matrix
test-matrix: build controlplane helm kubebuilder mariadb python ## Contract, children, charts and deploy on each supported version of Kubernetes, hours at first (VERSIONS='1.36 1.35').
	@hack/controlplane/matrix.sh

.PHONY: test-node
test-node: controlplane helm python ## The image on a real node with a MySQL server, as root (SHORT=1: a few minutes; LONG=1: all; KEEP=1: leave the node up).
	@hack/node/test.sh

.PHONY: test-olm
test-olm: controlplane helm ## The bundle on the Operator Lifecycle Manager, on a real node as root: install, upgrade, namespaces (8 minutes; 20 at first).
	@hack/olm/test.sh

.PHONY: molecule
molecule: build controlplane mariadb python bin/molecule ## The roles, and the operator as a whole, by Molecule on a cluster and a server of their own, 5 minutes (ARGS=cluster).
	@exec bin/molecule $(ARGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target (FUZZTIME=20s each; ARGS='Decode proxy' chooses).
	@FUZZTIME=$(FUZZTIME) hack/fuzz.sh $(ARGS)

.PHONY: faults
faults: build controlplane bin/faults ## Perform fault plans, 15 minutes for all (PLANS=regexp PARALLEL=10 SEED=n ARGS='--fast' or '--list').
	@exec bin/faults -plans '$(PLANS)' -parallel $(or $(PARALLEL),10) -seed $(or $(SEED),0) $(ARGS)

.PHONY: faults-mutants
faults-mutants: build controlplane bin/faults ## Show that fault plans notice every mutant of the manager, about 5 minutes (ARGS="-only regexp").
	@exec bin/faults -mutants -parallel $(or $(PARALLEL),9) $(ARGS)

.PHONY: chart-mutants
chart-mutants: build controlplane helm python bin/faults ## Show that test/charts notices every mutant of what is done with charts, half an hour (ARGS="-only regexp -logs directory -at-once 1").
	@exec bin/faults -chart-mutants $(ARGS)

.PHONY: shard-mutants
shard-mutants: build controlplane python bin/faults ## Show that test/leases notices every mutant of what keeps shards apart, 5 minutes (ARGS as for chart-mutants).
	@exec bin/faults -shard-mutants $(ARGS)

.PHONY: job-mutants
job-mutants: build controlplane python bin/faults ## Show that test/jobs notices every mutant of what is done with Jobs, 10 minutes (ARGS as for chart-mutants).
	@exec bin/faults -job-mutants $(ARGS)

.PHONY: run-mutants
run-mutants: python bin/faults ## Show that test/runs notices every mutant of runs, a minute (ARGS as for chart-mutants, without -logs).
	@exec bin/faults -run-mutants $(ARGS)

.PHONY: image-test
image-test: controlplane python ## Build the images without a Docker engine and check them, 15 minutes, then 6 (root and Debian's buildah, mmdebstrap).
	@hack/image/test.sh

.PHONY: reproducible
reproducible: ## Show that two builds of the programs are identical, 10 minutes (20 on two busy cores).
	@hack/image/reproducible.sh

.PHONY: lint
lint: python ## Lint Go, YAML, Python and Ansible content.
	@hack/lint.sh check

.PHONY: vulncheck
vulncheck: python ## Look for known vulnerabilities (CVEs) in the modules and packages of the image, 2 minutes (GOVULNDB= and OSV_URL= name mirrors; OSV_IGNORE='ID').
	@hack/vulncheck/vulncheck.sh

.PHONY: sanity
sanity: python ## Run ansible-test sanity on the collections, about 3 minutes (ARGS='--test validate-modules').
	@hack/python/sanity.sh $(ARGS)

.PHONY: fmt
fmt: python ## Format Go and Python.
	@hack/lint.sh fmt

.PHONY: verify
verify: python ## Fail when a module, a format or a lint rule is not as it should be.
	@hack/lint.sh modules formats check

.PHONY: bench
bench: build controlplane mariadb python bin/bench ## Measure speed and memory, about 35 minutes (ARGS='--parts memory,warm,proxy,children,mysql,traces,releases,scale,shards --json').
	@exec bin/bench $(ARGS)

##@ Deploy (to KUBECONFIG's cluster, or to the running devcluster)

.PHONY: install
install: ## Install the CRDs.
	@KUBECTL=$(KUBECTL) hack/deploy.sh install

.PHONY: uninstall
uninstall: ensign ## Remove the CRDs (FORCE=1: and custom resources, without their finalizers).
	@KUBECTL=$(KUBECTL) FORCE=$(FORCE) hack/deploy.sh uninstall

.PHONY: deploy
deploy: ## Install the CRDs and run the manager of image IMG (OVERLAY=high-availability, jobs, namespaced or shards).
	@KUBECTL=$(KUBECTL) IMG=$(IMG) OVERLAY=$(OVERLAY) hack/deploy.sh deploy

.PHONY: undeploy
undeploy: ensign ## Remove what deploy made (FORCE=1: and custom resources, without their finalizers).
	@KUBECTL=$(KUBECTL) FORCE=$(FORCE) hack/deploy.sh undeploy

# hack/bundle is a module of its own.
bundle = cd hack/bundle && ../compile/compile.sh bundle -buildvcs=false -o ../../bin/bundle .

.PHONY: build-installer
build-installer: ## Write dist/install.yaml: config/default with image IMG.
	@$(bundle) && ../../bin/bundle -image $(IMG) install

.PHONY: bundle
bundle: ensign ## Write and validate dist/bundle, for the Operator Lifecycle Manager, with image IMG (BUNDLE_VERSION=1.2.3 DIST=dir).
	@$(bundle) && ../../bin/bundle -out $(abspath $(DIST)) -image $(IMG) install samples
	@$(dir $(OUT))ensign bundle -f $(DIST)/install.yaml --samples $(DIST)/samples.yaml --output $(DIST)/bundle $(addprefix --version ,$(BUNDLE_VERSION))
	@bin/bundle -out $(DIST) validate

.PHONY: pictures
pictures: build controlplane python bin/devcluster ## Draw docs/images from what the programs print, on a cluster of its own (a minute).
	@hack/pictures.sh

.PHONY: release
release: ## Make a release without publishing it: a registry and a key of its own, hack/release/README.md (RELEASE=1.2.3; KEEP=1: the registry stays up).
	@hack/release/release.sh --dry-run $(RELEASE)

# Which compiler and Python the images are built on: BUILD_ARGS='--build-arg PYTHON_IMAGE=python:3.13-slim@sha256:…'.
BUILD_ARGS ?=
# Mirrors of Go modules and Python packages that the environment or the call names reach the build.
mirrors = $(foreach name,GOPROXY PIP_INDEX_URL,$(if $($(name)),--build-arg $(name)))
docker_build = --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) $(mirrors) $(BUILD_ARGS)

.PHONY: site
site: python ## Make the site of docs/ in dist/site (a minute at first, then seconds).
	@hack/site/site.sh build

.PHONY: site-serve
site-serve: python ## Serve the site of docs/ at http://127.0.0.1:8000, and make it again after each change.
	@hack/site/site.sh serve

.PHONY: docker-build
docker-build: ## Build image IMG.
	@$(CONTAINER_TOOL) build $(docker_build) -t $(IMG) .

.PHONY: docker-build-base
docker-build-base: ## Build image BASE_IMG, which operators build FROM.
	@$(CONTAINER_TOOL) build $(docker_build) --target base -t $(BASE_IMG) .

.PHONY: docker-buildx
docker-buildx: ## Build IMG and BASE_IMG for PLATFORMS, with SBOM and provenance, and push them.
	@docker buildx build $(docker_build) --platform $(PLATFORMS) --sbom=true --provenance=mode=max --push --target base -t $(BASE_IMG) .
	@docker buildx build $(docker_build) --platform $(PLATFORMS) --sbom=true --provenance=mode=max --push -t $(IMG) .

.PHONY: docker-push
docker-push: ## Push image IMG.
	@$(CONTAINER_TOOL) push $(IMG)

##@ Tidy up

.PHONY: clean
clean: ## Remove everything that make has made: bin, dist, .venv, .dev.
	@rm -rf bin dist .venv .dev
