// Package pyenv finds the Python environment with ansible-runner and ansible-playbook,
// inspects it, and checks that it is safe.
//
//   - Find looks where an environment usually is.
//   - Env.Inspect asks the environment's Python for the installed packages, and refuses versions
//     that Ensign does not support. It tries the guard of names in requests (package program) on
//     the installed Kubernetes client.
//   - Env.Canary runs one small play with the environment's programs, and refuses an
//     environment in which Ansible evaluates text of a custom resource.
//   - A Checker does both, and does it again when the environment has changed.
//
// The package does not install anything, run playbooks for custom resources, or know how
// variables are encoded.
package pyenv
