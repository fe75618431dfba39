// Package e2e holds the suites that run the manager as its own process, with
// the real ansible-runner, against a real control plane. They need bin/manager,
// .venv and bin/controlplane, which `make test` provides.
package e2e
