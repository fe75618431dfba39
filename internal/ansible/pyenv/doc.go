// Package pyenv finds the Python environment that holds ansible-runner and
// ansible-playbook, tells what is in it, and tries whether it is safe.
//
// Find looks in the places where an environment usually is. Env.Inspect asks the
// environment's own Python what is installed and refuses what Ensign can't work
// with. Env.Canary runs one small play through the real programs and refuses an
// environment in which text of a custom resource would be evaluated. A Proof does
// both, and again when the environment has changed.
//
// The package does not install anything, run playbooks for custom resources, or
// know how variables are encoded.
package pyenv
