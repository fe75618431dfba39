// Package safevars holds the evidence that what a custom resource says reaches
// Ansible as data: its tests encode hostile objects with internal/extravars
// and hand them to the real Ansible and the real ansible-runner of the tree's
// .venv, made by hack/python.sh. Without it they fail; they never skip.
//
// The package has no code of its own, and does not test what a run prints.
package safevars
